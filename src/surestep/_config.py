"""Putting configs together: the caller's over the graph's over that of the node around the call.

Rules:
1. Lists of tags and callbacks add up; configurable and metadata are merged key by key, the later value wins.
2. A caller that names its own thread or checkpoint starts afresh: nothing of the surrounding configurable is
   taken.
3. An empty value (None) says nothing and overrides nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from surestep._constants import (
    CONF,
    CONFIG_KEY_CHECKPOINT_ID,
    CONFIG_KEY_CHECKPOINT_MAP,
    CONFIG_KEY_CHECKPOINT_NS,
    CONFIG_KEY_TASK_ID,
    CONFIG_KEY_THREAD_ID,
)
from surestep._context import current_task

if TYPE_CHECKING:
    from surestep.types import RunnableConfig

_COORDINATES: Final = (
    CONFIG_KEY_THREAD_ID,
    CONFIG_KEY_CHECKPOINT_NS,
    CONFIG_KEY_CHECKPOINT_ID,
    CONFIG_KEY_CHECKPOINT_MAP,
)
_COPIED_TO_METADATA: Final = (
    "thread_id",
    "checkpoint_id",
    "checkpoint_ns",
    "task_id",
    "run_id",
    "assistant_id",
    "graph_id",
)
_CONFIG_KEYS: Final = frozenset(
    (
        "tags",
        "metadata",
        "callbacks",
        "run_name",
        "max_concurrency",
        "recursion_limit",
        "configurable",
        "run_id",
    )
)


class _DefaultLimit(int):
    """A recursion limit that nobody asked for, so that merging can tell."""

    __slots__ = ()


DEFAULT_RECURSION_LIMIT: Final = _DefaultLimit(os.environ.get("LANGGRAPH_DEFAULT_RECURSION_LIMIT", "10007"))
"""How many steps a run may take when the caller does not say; read once from
LANGGRAPH_DEFAULT_RECURSION_LIMIT."""

_FROM_CONTEXT: Any = object()


def ambient_config() -> RunnableConfig | None:
    """The config of the node, or of the LangChain runnable, that the caller runs in; None outside of both."""
    task = current_task.get()
    inner = _langchain_config()
    if task is None:
        return inner
    config: RunnableConfig = task.config
    if inner:
        # A runnable that the node called has a config of its own, derived from the node's. One that belongs
        # to another task is left over from around the graph.
        inner_task = inner.get(CONF, {}).get(CONFIG_KEY_TASK_ID)
        if inner_task is not None and inner_task == config.get(CONF, {}).get(CONFIG_KEY_TASK_ID):
            return inner
    return config


def _langchain_config() -> RunnableConfig | None:
    variable = getattr(sys.modules.get("langchain_core.runnables.config"), "var_child_runnable_config", None)
    return None if variable is None else variable.get()


def ensure_config(*configs: RunnableConfig | None, ambient: RunnableConfig | None = _FROM_CONTEXT) -> RunnableConfig:
    """A complete config of its own: the ambient one, and the given ones over it in order.

    ambient: the config of the node around the call; taken from the context when left out. It has tags,
    metadata, callbacks, recursion_limit and configurable in any case. Keys that a config does not know are
    taken for configurable. The ids in configurable are also put into metadata, unless it has them.
    """
    if ambient is _FROM_CONTEXT:
        ambient = ambient_config()
    tags: list[str] = []
    metadata: dict[str, Any] = {}
    configurable: dict[str, Any] = {}
    result: dict[str, Any] = {
        "tags": tags,
        "metadata": metadata,
        "callbacks": None,
        "recursion_limit": DEFAULT_RECURSION_LIMIT,
        CONF: configurable,
    }
    if ambient:
        _overlay(result, ambient)
        if _names_a_thread(configs):
            for key in _COORDINATES:
                if key in configurable and metadata.get(key) == configurable[key]:
                    metadata.pop(key, None)
            configurable.clear()
    inherited = frozenset(tags)
    for config in configs:
        if config:
            _overlay(result, config, inherited)
    for key in _COPIED_TO_METADATA:
        if configurable.get(key) and key not in metadata:
            metadata[key] = configurable[key]
    return cast("RunnableConfig", result)


def _overlay(result: dict[str, Any], config: Mapping[str, Any], inherited: frozenset[str] = frozenset()) -> None:
    for key, value in config.items():
        if value is None:
            continue
        if key == CONF:
            result[CONF].update(value)
        elif key == "metadata":
            _merge_metadata(result["metadata"], value)
        elif key == "tags":
            result["tags"].extend(tag for tag in value if tag not in inherited)
        elif key == "callbacks":
            result["callbacks"] = merge_callbacks(result["callbacks"], value)
        elif key in _CONFIG_KEYS:
            result[key] = value
        else:
            result[CONF][key] = value


def _names_a_thread(configs: tuple[RunnableConfig | None, ...]) -> bool:
    for config in configs:
        configurable = config.get(CONF) if config else None
        if configurable and any(configurable.get(key) is not None for key in _COORDINATES):
            return True
    return False


def merge_configs(*configs: RunnableConfig | None) -> RunnableConfig:
    """The given configs in one, later ones over earlier ones; without the ambient config and without
    defaults.

    A recursion limit that is only the default overrides nothing.
    """
    result: dict[str, Any] = {}
    for config in configs:
        for key, value in (config or {}).items():
            if value is None or isinstance(value, _DefaultLimit):
                continue
            if key in ("metadata", CONF):
                merged = result[key] = dict(result.get(key) or {})
                _merge_metadata(merged, cast("Mapping[str, Any]", value))
            elif key == "tags":
                if value:
                    result[key] = [*result.get(key, ()), *cast("list[str]", value)]
            elif key == "callbacks":
                result[key] = merge_callbacks(result.get(key), value)
            else:
                result[key] = value
    result.setdefault(CONF, {})
    return cast("RunnableConfig", result)


def patch_configurable(config: RunnableConfig | None, patch: dict[str, Any]) -> RunnableConfig:
    """A copy of `config` with `patch` over its configurable."""
    if config is None:
        return {"configurable": patch}
    return {**config, "configurable": {**config.get("configurable", {}), **patch}}


def _merge_metadata(target: dict[str, Any], source: Mapping[str, Any]) -> None:
    """`source` over `target`, in place; lc_versions, a table of package versions, grows instead of being
    replaced."""
    versions = target.get("lc_versions")
    target.update(source)
    new = source.get("lc_versions")
    if isinstance(versions, Mapping) and isinstance(new, Mapping):
        target["lc_versions"] = {**versions, **new}


def merge_callbacks(first: Any, second: Any) -> Any:
    """Callbacks of both: lists of handlers, or LangChain callback managers, which are copied before they
    grow."""
    if first is None or second is None:
        given = second if first is None else first
        return list(given) if isinstance(given, list) else given
    managers = [callbacks for callbacks in (first, second) if hasattr(callbacks, "add_handler")]
    if not managers:
        return [*_handlers(first), *_handlers(second)]
    if len(managers) == 2:
        return first.merge(second)
    manager = managers[0].copy()
    for handler in _handlers(second if managers[0] is first else first):
        manager.add_handler(handler, inherit=True)
    return manager


def _handlers(callbacks: Any) -> list[Any]:
    return callbacks if isinstance(callbacks, list) else [callbacks]
