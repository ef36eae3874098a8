"""Where control may go: conditional edges, and what becomes of a destination that is not a node."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from surestep._constants import TASKS
from surestep._core.blueprint import MANY
from surestep._drive.call import Call, coerce
from surestep.constants import END, START
from surestep.errors import InvalidUpdateError
from surestep.graph._infer import input_hint, path_names
from surestep.pregel.node import Fresh, Router, Way, Write, lookups_of
from surestep.types import Command, Send

Targets = Mapping[str, str]
"""Nodes that control may be sent to, each with the channel that starts it."""

_SHOWN: Final = 12  # names in a message before it says "..."


class BranchSpec(NamedTuple):
    """A conditional edge as it was declared.

    `path`: the function that chooses. `ends`: its possible answers, with the node that each stands for, or
    None when any node may be the answer. `input_schema`: the annotation of its first parameter, if a schema.
    """

    path: Call
    ends: dict[Hashable, str] | None
    input_schema: type | None = None

    @classmethod
    def of(cls, path: Any, path_map: Mapping[Hashable, str] | Sequence[str] | None = None) -> BranchSpec:
        """The branch of a path function. Without a map, a `Literal` return annotation names the answers."""
        if path_map is None:
            path_map = path_names(path) or None
        if path_map is not None and not isinstance(path_map, Mapping):
            path_map = {name: name for name in path_map}
        return cls(coerce(path), dict(path_map) if path_map else None, input_hint(path))


class NoSuchAnswer(InvalidUpdateError, KeyError):
    """Raised when a path function answers with something that its path map doesn't have."""

    __str__ = Exception.__str__


class BranchRouter(Router):
    """Runs one conditional edge of `source`.

    `reads`: the channels that the path function sees, as for a node. `merges`: its input is a dict without a
    schema of its own, so that it also sees what the node returned, under the state.
    """

    __slots__ = ("ends", "known", "lookups", "mapper", "merges", "name", "path", "reads", "source", "targets")

    def __init__(
        self,
        branch: BranchSpec,
        *,
        name: str,
        source: str,
        reads: str | list[str] | None,
        mapper: Callable[[Mapping[str, Any]], Any] | None,
        targets: Targets,
    ) -> None:
        self.path = branch.path
        self.ends = branch.ends
        self.name = name
        self.source = source
        self.reads = tuple(reads) if isinstance(reads, list) else reads
        self.mapper = mapper
        wide = type(self.reads) is tuple and len(self.reads) > MANY and mapper is None
        self.lookups = lookups_of(self.path) if wide else None
        self.merges = branch.input_schema is None and mapper is None
        self.targets = targets
        self.known: dict[str, Sequence[Write]] = {}  # what answers with one name came to

    def input(self, fresh: Fresh, value: Any) -> Any:
        """The state with the node's own writes applied, as the path function's schema."""
        if self.reads is None:
            return value
        state = fresh(self.reads, self.lookups)
        if self.mapper is not None:
            return self.mapper(state)
        if self.merges and isinstance(value, dict) and isinstance(state, dict):
            return state if value.keys() <= state.keys() else {**value, **state}
        return state

    def route(self, chosen: Any) -> Sequence[Write]:
        """One write for each node that was chosen.

        ValueError for None, InvalidUpdateError for what is not a node, and for an answer that the path map
        doesn't have (that one is also a KeyError).
        """
        if type(chosen) is str:
            if (known := self.known.get(chosen)) is None:
                known = self.known[chosen] = self._writes(chosen)
            return known
        return self._writes(chosen)

    def _writes(self, chosen: Any) -> Sequence[Write]:
        writes: list[Write] = []
        ends = self.ends
        for answer in chosen if isinstance(chosen, (list, tuple)) else (chosen,):
            target = answer if ends is None or isinstance(answer, Send) else self._mapped(answer, ends)
            if target is None or target == START:
                raise ValueError(
                    f"Branch did not return a valid destination: {self._who()} answered {answer!r}. Return "
                    "the name of a node, a Send, END to stop here, or a list of these."
                )
            if target != END:
                writes.append(control_write(target, self.targets, self._who))
        return writes

    def ways(self) -> Sequence[Way]:
        """Its possible answers; none if nobody listed them."""
        ends = (self.ends or {}).items()
        return [
            Way(self.targets.get(end, end), None, None if answer == end else str(answer), True) for answer, end in ends
        ]

    def _mapped(self, answer: Any, ends: Mapping[Any, Any]) -> Any:
        try:
            return ends[answer]
        except (KeyError, TypeError):
            raise NoSuchAnswer(
                f"{self._who()} answered {answer!r}, which its path map doesn't have. "
                f"Add it to the map, or return one of: {_some(ends)}."
            ) from None

    def _who(self) -> str:
        return f"the branch {self.name!r} of node {self.source!r}"


def control_write(target: Any, targets: Targets, who: Callable[[], str]) -> Write:
    """The write that starts `target`: a node's name or a Send.

    InvalidUpdateError if there is no such node; `who` says in the message who asked for it.
    """
    if isinstance(target, Send):
        if target.node in targets:
            return (TASKS, target)
        if target.node == END:
            raise InvalidUpdateError(
                f"Cannot send a packet to the END node, as {who()} did: return END itself to stop."
            )
    elif isinstance(target, str) and target in targets:
        return (targets[target], None)
    raise _unknown(target, who(), targets)


def _unknown(target: Any, who: str, targets: Targets) -> InvalidUpdateError:
    name = target.node if isinstance(target, Send) else target
    if isinstance(target, Command):
        hint = "A path function returns node names or Sends; a Command is what a node returns."
    elif name == START:
        hint = "START is where a run begins; name the first node instead."
    else:
        from difflib import get_close_matches

        close = get_close_matches(name, targets, 1) if isinstance(name, str) else []
        hint = f"Did you mean {close[0]!r}?" if close else f"The nodes are: {_some(targets)}."
    return InvalidUpdateError(f"Unknown destination {target!r}: {who} sent control there, but no such node. {hint}")


def _some(names: Mapping[Any, Any]) -> str:
    shown = [repr(name) for name in names][:_SHOWN]
    return ", ".join(shown) + (", ..." if len(names) > _SHOWN else "")
