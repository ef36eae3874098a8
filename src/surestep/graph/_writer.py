"""What a node of a StateGraph writes: its return value as state updates, then where control goes next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from surestep._core.blueprint import BRANCH, JOIN
from surestep._fields import annotated_keys
from surestep.constants import END
from surestep.errors import ErrorCode, InvalidUpdateError, ParentCommand, create_error_message
from surestep.graph._branch import Targets, control_write
from surestep.graph._schema import ROOT
from surestep.pregel.node import Way, Write, Writer
from surestep.types import Command, Send

_ABSENT: Final[Any] = object()
_SHOWN: Final = 200  # characters of a wrong value in a message


class NodeWriter(Writer):
    """All that a node writes but its conditional edges: its update, then its commands, then static edges.

    `keys`: the state keys that may be written; others in an update are dropped. `edges`: the writes of the
    static edges, the same each time. A dict and None, what nearly all nodes return, take the short way.
    """

    __slots__ = ("edges", "jumps", "keys", "name", "targets")

    def __init__(self, name: str, keys: Iterable[str], targets: Targets) -> None:
        self.name = name
        self.keys = dict.fromkeys(keys)  # in the order of the schema, with the look-up of a set
        self.targets = targets
        self.edges: tuple[Write, ...] = ()
        self.jumps: Mapping[str, str | None] = {}  # where its commands may go, with labels for drawings

    def __call__(self, value: Any) -> Sequence[Write]:
        """The writes. ParentCommand for a command to the graph around, InvalidUpdateError for no update."""
        if value is None:
            return self.edges
        if type(value) is dict:
            if value.keys() <= self.keys.keys():
                return [*value.items(), *self.edges]
            return [*self._updates(value), *self.edges]
        state: list[Write] = []
        control: list[Write] = []
        if isinstance(value, (list, tuple)) and any(isinstance(item, Command) for item in value):
            for item in value:
                self._add(item, state, control)
        else:
            self._add(value, state, control)
        return (*state, *control, *self.edges)

    def ways(self) -> Sequence[Way]:
        """Its commands' declared destinations, and its static edges."""
        jumps = [Way(self.targets.get(end, end), None, label, True) for end, label in self.jumps.items()]
        return [*jumps, *(Way(channel, value) for channel, value in self.edges)]

    def _add(self, value: Any, state: list[Write], control: list[Write]) -> None:
        if isinstance(value, Command):
            if value.graph == Command.PARENT:
                raise ParentCommand(value)
            if value.update is not None:
                state += self._commanded(value)
            control += [self._goto(target) for target in _targets_of(value, self.name) if target != END]
        elif isinstance(value, Send):
            control.append(self._goto(value))
        elif value is not None:
            state += self._updates(value)

    def _goto(self, target: Any) -> Write:
        return control_write(target, self.targets, lambda: f"node {self.name!r}")

    def _updates(self, value: Any) -> list[Write]:
        """The state writes of a return value that is neither None nor a command."""
        if isinstance(value, dict):
            return [item for item in value.items() if item[0] in self.keys]
        if not isinstance(value, type) and annotated_keys(value.__class__):
            return _attributes(value, self.keys)
        raise self._not_an_update(value)

    def _commanded(self, command: Command[Any]) -> list[Write]:
        """The state writes of a command's update."""
        writes = command._update_as_tuples()
        if any(key == ROOT for key, _ in writes) and ROOT not in self.keys:
            raise self._not_an_update(command.update, " as the update of a Command")
        return [write for write in writes if write[0] in self.keys]

    def _not_an_update(self, value: Any, where: str = "") -> InvalidUpdateError:
        shown = repr(value)
        if len(shown) > _SHOWN:
            shown = f"{shown[:_SHOWN]}..."
        return InvalidUpdateError(
            create_error_message(
                message=f"Expected dict, got {shown} from node {self.name!r}{where}. Return a dict of state "
                f"keys ({', '.join(self.keys)}), an object of the state's class, a Command, or None.",
                error_code=ErrorCode.INVALID_GRAPH_NODE_RETURN_VALUE,
            )
        )


class RootWriter(NodeWriter):
    """The same where the state is one value: what the node returns is the update, unless it is a command."""

    __slots__ = ()

    def __call__(self, value: Any) -> Sequence[Write]:
        """The writes, as for a NodeWriter; a dict is a value like any other."""
        if type(value) is dict:
            return ((ROOT, value), *self.edges)
        return super().__call__(value)

    def _updates(self, value: Any) -> list[Write]:
        return [(ROOT, value)]

    def _commanded(self, command: Command[Any]) -> list[Write]:
        update = command.update
        if isinstance(update, dict) and update.keys() == {ROOT}:
            update = update[ROOT]
        return [(ROOT, update)]


def _targets_of(command: Command[Any], name: str) -> Iterable[Any]:
    goto: Any = command.goto
    if goto is None:
        return ()
    if isinstance(goto, str | Send):
        return (goto,)
    try:
        return list(goto)
    except TypeError:
        raise InvalidUpdateError(
            f"Node {name!r} returned a Command with goto={goto!r}: it takes a node's name, a Send, or a list of these."
        ) from None


def _attributes(value: Any, keys: Iterable[str]) -> list[Write]:
    """The attributes of an object that are state keys.

    Of a pydantic model a field that is None counts only when it was set, or when its default is something
    else: an optional field that nobody set must not wipe the state.
    """
    fields = getattr(type(value), "model_fields", None)
    fields_set = value.model_fields_set if fields is not None else ()
    writes: list[Write] = []
    for key in keys:
        attribute = getattr(value, key, _ABSENT)
        if attribute is _ABSENT:
            continue
        if attribute is None and fields is not None and key not in fields_set:
            field = fields.get(key)
            if field is None or field.default is None:
                continue
        writes.append((key, attribute))
    return writes


def barrier_name(starts: Iterable[str], end: str) -> str:
    """The channel in which a join counts its sources."""
    return f"{JOIN}{'+'.join(starts)}:{end}"


def trigger_name(node: str) -> str:
    """The channel that starts a node."""
    return f"{BRANCH}{node}"
