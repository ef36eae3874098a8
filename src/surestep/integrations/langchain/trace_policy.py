"""What of a node's input and output is recorded."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from copy import copy
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from langchain_core.tracers.core import _TracerCore

from surestep.integrations.watch import Told

if TYPE_CHECKING:
    from surestep.types import TracePolicy

log = logging.getLogger("surestep")


class Recorder:
    """Tells the start and the end of a node's run: tracers hear what the node's TracePolicy makes of the payload,
    other handlers hear it as it is.
    """

    __slots__ = ("policy",)

    def __init__(self, policy: TracePolicy | None) -> None:
        self.policy = policy

    def start(self, manager: Any, payload: Any, name: str) -> Generator[Any, Any, Any]:
        """Tell the start; the run."""
        shown = self._processed("process_inputs", payload)
        if shown is payload:
            return (yield Told(manager.on_chain_start, None, payload, name=name), None)
        run_id = uuid4()
        for part, part_payload in self._parts(manager, payload, shown):
            yield Told(part.on_chain_start, None, part_payload, name=name, run_id=run_id), None
        nobody = copy(manager)
        nobody.handlers = []
        run = yield Told(nobody.on_chain_start, None, None, run_id=run_id), None
        run.handlers = manager.handlers
        return run

    def end(self, run: Any, payload: Any) -> Generator[Any, Any, None]:
        """Tell the end."""
        shown = self._processed("process_outputs", payload)
        for part, part_payload in [(run, payload)] if shown is payload else self._parts(run, payload, shown):
            yield Told(part.on_chain_end, part_payload), None

    def _processed(self, which: str, payload: Any) -> Any:
        process: Callable[[Any], Any] | None = getattr(self.policy, which, None)
        if process is None:
            return payload
        try:
            return process(payload)
        except Exception:
            log.warning("TracePolicy.%s failed, so the payload is recorded as it is.", which, exc_info=True)
            return payload

    @staticmethod
    def _parts(manager: Any, payload: Any, shown: Any) -> list[tuple[Any, Any]]:
        tracers, others = copy(manager), copy(manager)
        tracers.handlers = [handler for handler in manager.handlers if isinstance(handler, _TracerCore)]
        others.handlers = [handler for handler in manager.handlers if not isinstance(handler, _TracerCore)]
        return [(part, what) for part, what in ((tracers, shown), (others, payload)) if part.handlers]
