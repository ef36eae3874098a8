"""Type variables of a graph: its state, its context, what goes in and what comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Type checkers see the defaults (StateGraph[State] is StateGraph[State, None, State, State]) and the
    # bound: a state is a TypedDict, a dataclass or a pydantic model. At run time plain variables do, without
    # the dependency.
    from pydantic import BaseModel
    from typing_extensions import TypeVar

    from surestep._typing import DataclassLike, TypedDictLike

    StateT = TypeVar("StateT", bound=TypedDictLike | DataclassLike | BaseModel)
    StateT_co = TypeVar("StateT_co", bound=TypedDictLike | DataclassLike | BaseModel, default=Any, covariant=True)
    StateT_contra = TypeVar("StateT_contra", bound=TypedDictLike | DataclassLike | BaseModel, contravariant=True)
    ContextT = TypeVar("ContextT", bound=TypedDictLike | DataclassLike | BaseModel | None, default=None)
    ContextT_contra = TypeVar(
        "ContextT_contra",
        bound=TypedDictLike | DataclassLike | BaseModel | None,
        contravariant=True,
        default=None,
    )
    InputT = TypeVar("InputT", bound=TypedDictLike | DataclassLike | BaseModel, default=StateT)
    OutputT = TypeVar("OutputT", bound=TypedDictLike | DataclassLike | BaseModel, default=StateT)
    NodeInputT = TypeVar("NodeInputT", bound=TypedDictLike | DataclassLike | BaseModel)
    NodeInputT_contra = TypeVar(
        "NodeInputT_contra", bound=TypedDictLike | DataclassLike | BaseModel, contravariant=True
    )
else:
    from typing import TypeVar

    StateT = TypeVar("StateT")
    StateT_co = TypeVar("StateT_co", covariant=True)
    StateT_contra = TypeVar("StateT_contra", contravariant=True)
    ContextT = TypeVar("ContextT")
    ContextT_contra = TypeVar("ContextT_contra", contravariant=True)
    InputT = TypeVar("InputT")
    OutputT = TypeVar("OutputT")
    NodeInputT = TypeVar("NodeInputT")
    NodeInputT_contra = TypeVar("NodeInputT_contra", contravariant=True)

__all__ = (
    "ContextT",
    "InputT",
    "OutputT",
    "StateT",
    "StateT_co",
    "StateT_contra",
)
