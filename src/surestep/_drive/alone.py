"""A node's function outside of a run: what its parameters are filled from when only a config is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from surestep._constants import CONF, CONFIG_KEY_NODE_ERROR, CONFIG_KEY_RUNTIME
from surestep.runtime import DEFAULT_RUNTIME, Runtime


class Alone:
    """Stands for the `TaskContext` that a node would see."""

    __slots__ = ("config",)

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config

    @property
    def runtime(self) -> Runtime[Any]:
        """The runtime in the config, or an empty one."""
        found: Runtime[Any] = self.config.get(CONF, {}).get(CONFIG_KEY_RUNTIME) or DEFAULT_RUNTIME
        return found

    @property
    def store(self) -> Any:
        return self.runtime.store

    @property
    def stream_writer(self) -> Callable[[Any], None]:
        return self.runtime.stream_writer

    @property
    def previous(self) -> Any:
        return self.runtime.previous

    @property
    def node_error(self) -> Any:
        return self.config.get(CONF, {}).get(CONFIG_KEY_NODE_ERROR)
