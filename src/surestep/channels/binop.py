"""A channel with a reducer, and what an Overwrite does to it."""

from __future__ import annotations

import collections.abc
from collections.abc import Callable, Sequence
from itertools import chain
from operator import add
from typing import Annotated, Any, Generic, NotRequired, Required, get_args, get_origin

from surestep._constants import OVERWRITE
from surestep.channels.base import MISSING, Value, ValueChannel
from surestep.checkpoint.serde.types import _DeltaSnapshot
from surestep.errors import ErrorCode, InvalidUpdateError, create_error_message
from surestep.types import Overwrite

__all__ = ("BinaryOperatorAggregate",)

# What may be an Overwrite; a look at the type settles it for most writes.
_OVERWRITES = (Overwrite, dict)


class BinaryOperatorAggregate(ValueChannel[Value], Generic[Value]):
    """Folds every write into the value with `operator(value, write)`, in the order of the writes.

    Starts with `typ()` where that works (a list for list, 0 for int), else with the first write as it is. One
    Overwrite a step replaces the value; the other writes of that step are dropped.
    """

    __slots__ = ("factory", "operator")

    reacts_to_silence = False

    operator: Callable[[Value, Value], Value]
    factory: Callable[[], Any] | None

    def __init__(self, typ: type[Value], operator: Callable[[Value, Value], Value]) -> None:
        self.typ = typ
        self.key = ""
        self.operator = operator
        self.factory = concrete_type(typ)
        try:
            self.value = self.factory()
        except Exception:  # an abstract type, a model with required fields, ...: no initial value
            self.factory = None
            self.value = MISSING

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BinaryOperatorAggregate)
            and type(other) is type(self)
            and same_function(self.operator, other.operator)
        )

    def copy(self) -> BinaryOperatorAggregate[Value]:
        """A channel with the same value."""
        return self._with(self.value)

    def from_checkpoint(self, checkpoint: Any) -> BinaryOperatorAggregate[Value]:
        """A new channel with the saved value, or with the initial one."""
        if checkpoint is MISSING:
            return self._with(MISSING if self.factory is None else self.factory())
        # A key that was a DeltaChannel when it was saved.
        return self._with(checkpoint.value if isinstance(checkpoint, _DeltaSnapshot) else checkpoint)

    def _with(self, value: Any) -> BinaryOperatorAggregate[Value]:
        cls = type(self)
        channel = cls.__new__(cls)  # not __init__, which would work out the initial value again
        channel.typ = self.typ
        channel.key = self.key
        channel.operator = self.operator
        channel.factory = self.factory
        channel.value = value
        return channel

    def update(self, values: Sequence[Value]) -> bool:
        """Fold the values in; False without any. Raises InvalidUpdateError for two Overwrites in one step."""
        if not values:
            return False
        operator = self.operator
        folded = self.value
        if operator is add and _all_lists(folded, values):
            # One after the other, each sum would copy all those before it.
            self.value = list(chain(folded, *values))  # type: ignore[arg-type]
            return True
        overwritten = False
        for value in values:
            if isinstance(value, _OVERWRITES):
                is_overwrite, replacement = _get_overwrite(value)
                if is_overwrite:
                    if overwritten:
                        raise two_overwrites(self.key)
                    folded = replacement
                    overwritten = True
                    continue
            if not overwritten:
                folded = value if folded is MISSING else operator(folded, value)
        self.value = folded
        return True


def _all_lists(folded: Any, values: Sequence[Any]) -> bool:
    """Whether these are several bare lists, whose sum is all of their items."""
    return len(values) > 1 and type(folded) is list and all(type(value) is list for value in values)


def _get_overwrite(value: Any) -> tuple[bool, Any]:
    """Whether `value` is an Overwrite, as an object or in one of its JSON forms, and what it replaces the
    value with."""
    if isinstance(value, Overwrite):
        return True, value.value
    if isinstance(value, dict):
        if OVERWRITE in value:
            if len(value) == 1:
                return True, value[OVERWRITE]
        elif "type" in value and "value" in value:
            kind = value["type"]
            if isinstance(kind, str) and kind == OVERWRITE:
                return True, value["value"]
    return False, None


def two_overwrites(key: str) -> InvalidUpdateError:
    """The error of a key that was overwritten twice in a step."""
    return InvalidUpdateError(
        create_error_message(
            message=f"At key {key!r}: Can receive only one Overwrite value per super-step. "
            "Let one node overwrite the key.",
            error_code=ErrorCode.INVALID_CONCURRENT_GRAPH_UPDATE,
        ),
        channel=key,
    )


def same_function(a: Callable[..., Any], b: Callable[..., Any]) -> bool:
    """Whether two reducers count as the same. A lambda equals anything: each evaluation of a schema makes a
    new one."""
    return a == b or "<lambda>" in (getattr(a, "__name__", ""), getattr(b, "__name__", ""))


_CONCRETE: dict[Any, Any] = {
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Set: set,
    collections.abc.MutableSet: set,
    collections.abc.Mapping: dict,
    collections.abc.MutableMapping: dict,
}


def concrete_type(typ: Any) -> Any:
    """The class to make an empty value of `typ` with: list for Annotated[Sequence[int], ...]. What has none
    comes back bare and fails when it is called."""
    origin = get_origin(typ)
    while origin in (Annotated, Required, NotRequired):
        typ = get_args(typ)[0]
        origin = get_origin(typ)
    if origin is not None:
        typ = origin
    try:
        return _CONCRETE.get(typ, typ)
    except TypeError:  # an unhashable annotation
        return typ
