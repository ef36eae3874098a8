"""The core's storage commands as calls of a saver's methods. Written once; the drivers only make the calls.

Any saver with LangGraph's contract will do. One that offers a unit of work gets a step's checkpoint and last writes
in one call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from surestep._constants import CONF
from surestep._core.commands import Commit, ListCheckpoints, Load, Replay, Save
from surestep._core.events import Loaded
from surestep._core.isolate import isolate
from surestep._drive.context import public
from surestep.checkpoint.base import (
    CLAIM_KEY,
    HEAD_KEY,
    get_checkpoint_metadata,
    has_unit_of_work,
    saver_writes_inline,
)
from surestep.checkpoint.base._leases import HOLD_KEY, RELEASE_KEY, Hold
from surestep.checkpoint.base._types import SEEN_KEY
from surestep.checkpoint.serde.base import SerializationError as SerializationError

BACKLOG = 8  # saves that may wait behind a run in `async` durability; then the run waits


class SaverCall(NamedTuple):
    """One call of a saver; its async form has the same name with an `a` in front."""

    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = {}


class SaverPort:
    """A saver as one run uses it."""

    __slots__ = ("config", "hold", "inline", "labels", "migrate", "saver", "takes_path", "thread_id", "unit_of_work")

    def __init__(
        self, saver: Any, config: Mapping[str, Any], migrate: Callable[[Any], None], hold: Hold | None = None
    ) -> None:
        self.hold = hold
        self.saver = saver
        self.migrate = migrate
        self.unit_of_work = has_unit_of_work(saver)
        self.inline = saver_writes_inline(saver)
        self.takes_path = _takes_path(saver)
        self.config = {**config, "configurable": public(config.get("configurable", {}))}
        self.config["configurable"].pop("checkpoint_map", None)
        self.thread_id = self.config["configurable"].get("thread_id")
        # What every checkpoint of the run says of the caller, worked out once. Other savers do it themselves, but know
        # nothing of listed keys.
        listed = getattr(saver, "metadata_keys", ())
        self.labels = _labels(self.config if self.unit_of_work else {CONF: self.config[CONF]}, listed)

    def at(self, ns: str, checkpoint_id: str | None, **private: Any) -> dict[str, Any]:
        """The config that addresses a checkpoint of this thread."""
        configurable = {**self.config["configurable"], "checkpoint_ns": ns, **private}
        if checkpoint_id is None:
            configurable.pop("checkpoint_id", None)
        else:
            configurable["checkpoint_id"] = checkpoint_id
        return {**self.config, "configurable": configurable}

    # writing

    def saves(self, command: Save | Commit, background: bool) -> list[SaverCall]:
        """The calls that keep what the command holds; `background`: later, while the run goes on."""
        if type(command) is Save:
            return [self._put_writes(command.ns, command.checkpoint_id, command.rows, command.claim)]
        assert isinstance(command, Commit)
        if self.unit_of_work:
            return [SaverCall("commit", (*self._unit(command, background), command.rows))]
        rows = [self._put_writes(command.ns, command.parent_id, row, False) for row in command.rows]
        return [*rows, SaverCall("put", self._put_arguments(command, background))]

    def write(self, command: Save | Commit) -> None:
        """Keep it here and now: for savers whose calls cost next to nothing."""
        if type(command) is Commit and self.unit_of_work:
            config, checkpoint, metadata, new_versions = self._unit(command, background=False)
            self.saver.commit(config, checkpoint, metadata, new_versions, command.rows)
        else:
            for call in self.saves(command, background=False):
                getattr(self.saver, call.name)(*call.args)

    def _put_arguments(self, command: Commit, background: bool) -> tuple[Any, Any, Any, Any]:
        guard: dict[str, Any] = {HEAD_KEY: command.head_id} if command.guarded else {}
        if self.hold is not None:
            guard[HOLD_KEY] = self.hold
            if command.final:
                guard[RELEASE_KEY] = True
        config = self.at(command.ns, command.parent_id, **guard)
        metadata = {**command.metadata, **self.labels}
        return config, self._checkpoint(command, background), metadata, command.new_versions

    def _unit(self, command: Commit, background: bool) -> tuple[Any, Any, Any, Any]:
        """The same with no more in the config than such a saver looks at: this is done at every step."""
        configurable: dict[str, Any] = {"thread_id": self.thread_id, "checkpoint_ns": command.ns}
        if command.parent_id is not None:
            configurable["checkpoint_id"] = command.parent_id
        if command.guarded:
            configurable[HEAD_KEY] = command.head_id
        if self.hold is not None:
            configurable[HOLD_KEY] = self.hold
            if command.final:
                configurable[RELEASE_KEY] = True
        if command.new_seen is not None:
            configurable[SEEN_KEY] = command.new_seen
        metadata = {**command.metadata, **self.labels} if self.labels else command.metadata
        return {"configurable": configurable}, self._checkpoint(command, background), metadata, command.new_versions

    def _put_writes(self, ns: str, checkpoint_id: str | None, rows: Any, claim: bool) -> SaverCall:
        private: dict[str, Any] = {CLAIM_KEY: True} if claim else {}
        if self.hold is not None:
            private[HOLD_KEY] = self.hold
        config = self.at(ns, checkpoint_id, **private)
        args = (config, rows.writes, rows.task_id)
        return SaverCall("put_writes", (*args, rows.task_path) if self.takes_path else args)

    def _checkpoint(self, command: Commit, background: bool) -> dict[str, Any]:
        """The checkpoint with its values: those that changed where that is all the saver needs."""
        head: Any = command.checkpoint["channel_values"]
        names = command.new_versions if self.unit_of_work else command.checkpoint["channel_versions"]
        values = head.values_to_keep(names)
        checkpoint: Any = command.checkpoint
        checkpoint["channel_values"] = isolate(values) if background else values
        if not self.inline:  # it may look at them later, or keep them
            checkpoint["channel_versions"] = checkpoint["channel_versions"].copy()
            checkpoint["versions_seen"] = checkpoint["versions_seen"].copy()
        return checkpoint  # type: ignore[no-any-return]

    # reading

    def reads(self, command: Load | ListCheckpoints | Replay) -> list[SaverCall]:
        """The calls that read what the command asks for."""
        if type(command) is Load:
            return self._loads(command)
        if type(command) is Replay:
            config = self.at(command.ns, command.checkpoint_id)
            return [SaverCall("get_delta_channel_history", (), {"config": config, "channels": command.channels})]
        assert isinstance(command, ListCheckpoints)
        config = self.at(command.ns or "", command.checkpoint_id)
        before = self.at(command.ns or "", command.before) if command.before else None
        return [SaverCall("list", (config,), {"filter": command.filter, "before": before, "limit": command.limit})]

    def _loads(self, command: Load) -> list[SaverCall]:
        newest = SaverCall("get_tuple", (self.at(command.ns, None),))
        if command.before is not None:
            before = self.at(command.ns, command.before)
            return [newest, SaverCall("list", (self.at(command.ns, None),), {"before": before, "limit": 1})]
        if command.checkpoint_id is not None:
            return [newest, SaverCall("get_tuple", (self.at(command.ns, command.checkpoint_id),))]
        return [newest]

    def answer(self, command: Load | ListCheckpoints | Replay, results: Sequence[Any]) -> Any:
        """What the core is sent for the results of `reads`."""
        if type(command) is not Load:
            if type(command) is ListCheckpoints:
                for saved in results[0]:
                    self.migrate(saved)
            return results[0]
        newest, saved = results[0], results[-1]
        if command.before is not None:
            saved = saved[0] if saved else None
        if saved is not None:
            self.migrate(saved)
        head_id = newest.checkpoint["id"] if newest is not None else None
        return Loaded(saved, head_id)


def _labels(config: Mapping[str, Any], listed: Collection[str]) -> dict[str, Any]:
    """What the config adds to the metadata of a checkpoint, beside what the core says of it."""
    of_the_core: Any = dict.fromkeys(("source", "step", "parents"))
    merged = get_checkpoint_metadata(config, of_the_core, listed=listed)
    return {key: value for key, value in merged.items() if key not in of_the_core}


def _takes_path(saver: Any) -> bool:
    """Whether writes may be given with their task's path; savers from before there was one do without."""
    return all("task_path" in inspect.signature(put).parameters for put in (saver.put_writes, saver.aput_writes))
