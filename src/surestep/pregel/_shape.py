"""Parts of a stream as the caller sees them: v1 tuples and payloads, v2 dicts; and what `invoke` returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from surestep._core.blueprint import INTERRUPT
from surestep._core.events import Part
from surestep._core.run import Outcome
from surestep.errors import ErrorCode, GraphDrained, GraphRecursionError, create_error_message
from surestep.types import GraphOutput

if TYPE_CHECKING:
    from surestep.pregel.main import Pregel


def shaper(
    tagged: bool, subgraphs: bool, version: str, ns: tuple[str, ...], coerce: Callable[[str, Any], Any]
) -> Callable[[Part], Any]:
    """How a part is handed to the caller of the graph whose namespace is `ns`."""
    if version == "v2":
        return lambda part: as_v2(part, ns, coerce)
    if tagged and subgraphs:
        return lambda part: (part.ns, part.mode, part.payload)
    if tagged:
        return lambda part: (part.mode, part.payload)
    if subgraphs:
        return lambda part: (part.ns, part.payload)
    return lambda part: part.payload


def as_v2(part: Part, ns: tuple[str, ...], coerce: Callable[[str, Any], Any]) -> dict[str, Any]:
    """A part as a dict that says of itself what it is."""
    data, extra = part.payload, {}
    if part.mode == "values":
        questions: tuple[Any, ...] = ()
        if isinstance(data, dict) and INTERRUPT in data:
            questions = tuple(data[INTERRUPT])
            data = {key: value for key, value in data.items() if key != INTERRUPT}
        extra = {"interrupts": questions}
    if part.ns == ns:  # a nested graph's state is no instance of this one's classes
        data = coerce(part.mode, data)
    return {"type": part.mode, "ns": part.ns, "data": data, **extra}


def result(outcome: Outcome, version: str, coerce: Callable[[str, Any], Any]) -> Any:
    """What `invoke` returns."""
    output = outcome.output if outcome.shown else None
    if version == "v2":
        return GraphOutput(coerce("values", output), interrupts=outcome.questions)
    if outcome.questions:
        shown = output if isinstance(output, dict) else {}
        return {**shown, INTERRUPT: list(outcome.questions)}
    return output


def conclude(graph: Pregel[Any, Any, Any, Any], outcome: Outcome, limit: int, control: Any, nested: bool) -> None:
    """Raise what a run that did not simply end has to say."""
    if outcome.status == "out_of_steps":
        raise GraphRecursionError(
            create_error_message(
                message=f"Recursion limit of {limit} reached without hitting a stop condition in graph "
                f"'{graph.name}'. Everything up to here is kept. A larger limit: config={{'recursion_limit': ...}}.",
                error_code=ErrorCode.GRAPH_RECURSION_LIMIT,
            )
        )
    if outcome.status == "draining":
        raise GraphDrained(control.drain_reason or "shutdown")
    if nested and outcome.pause is not None:
        raise outcome.pause
