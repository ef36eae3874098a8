"""From a schema class to channels: what each key of the state accepts, and what it makes of a step's writes.

A key's annotation decides, in this order: a managed value; a channel, as an instance or a class, anywhere in
the `Annotated` metadata; a reducer `(a, b) -> c`, the last item of the metadata; else the last value wins. A
schema without annotations (`int`, `Annotated[list, operator.add]`) is one value, in the channel "__root__".
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Final

from surestep.channels.base import MISSING, BaseChannel
from surestep.channels.binop import BinaryOperatorAggregate
from surestep.channels.delta import DeltaChannel
from surestep.channels.last_value import LastValue
from surestep.managed.base import ManagedValueSpec, is_managed_value
from surestep.pregel._schemas import is_pydantic

ROOT: Final = "__root__"

Channel = BaseChannel[Any, Any, Any]

# By name: typing and typing_extensions each have their own on some Python versions.
_QUALIFIERS: Final = frozenset({"Required", "NotRequired", "ReadOnly"})


class Analysis(dict[str, Any]):
    """What a schema declares, by key: its channels, then its managed values, each in the order of the schema."""

    def __init__(self, channels: dict[str, Channel], managed: dict[str, ManagedValueSpec]) -> None:
        super().__init__({**channels, **managed})
        self.channels = channels
        self.managed = managed


def analyse(schema: Any) -> Analysis:
    """The channels and managed values of `schema`. ValueError for an annotation that can't be one."""
    if not hasattr(schema, "__annotations__"):
        kind = _declared(ROOT, schema)
        if is_managed_value(kind):
            raise ValueError(
                f"{schema} is not allowed in this position: a managed value is a key of a state schema, "
                "not the schema itself."
            )
        return Analysis({ROOT: typing.cast(Channel, kind)}, {})
    channels: dict[str, Channel] = {}
    managed: dict[str, ManagedValueSpec] = {}
    for key, annotation in _hints(schema).items():
        if key == "__slots__" or annotation is ClassVar or typing.get_origin(annotation) is ClassVar:
            continue
        kind = _declared(key, annotation)
        if is_managed_value(kind):
            managed[key] = kind
        else:
            channels[key] = typing.cast(Channel, kind)
    return Analysis(channels, managed)


def _hints(schema: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(schema, include_extras=True)
    except NameError as error:
        error.add_note(
            f"An annotation of the schema {getattr(schema, '__name__', schema)} can't be resolved: its names "
            "must be globals of its module, not only known to type checkers or local to a function."
        )
        raise


def _declared(key: str, annotation: Any) -> Channel | ManagedValueSpec:
    """What `annotation` declares for `key`."""
    annotation = _unqualified(annotation)
    managed = _managed(annotation)
    if managed is not None:
        return managed
    channel = _channel(annotation) or _reduced(key, annotation)
    if channel is None:
        channel = LastValue(annotation)
    channel.key = key
    return channel


def _unqualified(annotation: Any) -> Any:
    while getattr(typing.get_origin(annotation), "_name", None) in _QUALIFIERS:
        annotation = typing.get_args(annotation)[0]
    return annotation


def _metadata(annotation: Any) -> tuple[Any, ...]:
    return getattr(annotation, "__metadata__", ())


def _managed(annotation: Any) -> ManagedValueSpec | None:
    """The managed value declared by the annotation, also inside Optional and the like."""
    metadata = _metadata(annotation)
    if metadata:
        last = typing.get_origin(metadata[-1]) or metadata[-1]
        if is_managed_value(last):
            return last
        if last is typing.Annotated:  # Annotated[int, RemainingSteps]: the alias has the class in it
            return _managed(metadata[-1])
    arguments = typing.get_args(annotation)
    return _managed(arguments[0]) if arguments else None


def _channel(annotation: Any) -> Channel | None:
    """The channel among the metadata. What other packages put beside it doesn't matter."""
    for item in _metadata(annotation):
        value_type = _unqualified(annotation.__origin__)
        if isinstance(item, DeltaChannel):
            return DeltaChannel(item.reducer, value_type, snapshot_frequency=item.snapshot_frequency)
        if isinstance(item, BaseChannel):
            # A new one: the instance stands in an annotation that other keys and graphs may share.
            return item.from_checkpoint(MISSING)
        if isinstance(item, type) and issubclass(item, BaseChannel):
            return item(value_type)
    return None


def _reduced(key: str, annotation: Any) -> Channel | None:
    """A channel that folds with the reducer, if the last item of the metadata is a function."""
    metadata = _metadata(annotation)
    if not metadata or not callable(metadata[-1]):
        return None
    reducer = metadata[-1]
    try:
        parameters = list(inspect.signature(reducer).parameters.values())
    except ValueError:
        if isinstance(reducer, type):
            raise
        return BinaryOperatorAggregate(annotation, reducer)  # a builtin such as max doesn't tell
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(positional) != 2 or any(p.kind is p.VAR_POSITIONAL for p in parameters):
        raise ValueError(
            "Invalid reducer signature. Expected (a, b) -> c. "
            f"Got ({', '.join(str(p) for p in parameters)}) for key {key!r}: a reducer takes the value so "
            "far and one update. (An object that is no reducer must not be the last item of Annotated.)"
        )
    return BinaryOperatorAggregate(annotation, reducer)


def mapper_of(schema: Any, keys: list[str]) -> Callable[[Mapping[str, Any]], Any] | None:
    """What makes an instance of `schema` of the dict that was read; None where nodes get the dict itself.

    Dataclasses and pydantic models are made, so validated, each time a node reads; what is stored never is.
    """
    if keys == [ROOT] or not isinstance(schema, type):
        return None
    if hasattr(schema, "__dataclass_fields__") or is_pydantic(schema):
        return partial(_make, schema)
    return None


def _make(schema: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    return schema(**values)
