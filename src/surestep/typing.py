"""Type variables of a graph: its state, its context, what goes in and what comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Type checkers see the defaults (StateGraph[State] is StateGraph[State, None, State, State]) and the
    # bound: a state is a TypedDict, a dataclass or a pydantic model. At run time our own make them,
    # without the dependency.
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
    import sys
    from typing import TypeVar

    _NONE = object()

    def _variable(name: str, default: Any = _NONE, **kwargs: Any) -> TypeVar:
        """A type variable; its default is where both typing (from Python 3.13) and typing_extensions look for it."""
        if default is _NONE:
            return TypeVar(name, **kwargs)
        if sys.version_info >= (3, 13):
            return TypeVar(name, default=default, **kwargs)
        variable = TypeVar(name, **kwargs)
        variable.__default__ = default
        variable.has_default = lambda: True
        return variable

    StateT = _variable("StateT")
    StateT_co = _variable("StateT_co", default=Any, covariant=True)
    StateT_contra = _variable("StateT_contra", contravariant=True)
    ContextT = _variable("ContextT", default=None)
    ContextT_contra = _variable("ContextT_contra", default=None, contravariant=True)
    InputT = _variable("InputT", default=StateT)
    OutputT = _variable("OutputT", default=StateT)
    NodeInputT = _variable("NodeInputT")
    NodeInputT_contra = _variable("NodeInputT_contra", contravariant=True)


class OfState:
    """A class with the four type parameters of a graph, of which only the first need be given."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __class_getitem__(cls, params: Any) -> Any:
            given = params if isinstance(params, tuple) else (params,)
            defaults = (given[0], None, given[0], given[0])  # type checkers know them from the variables
            return super().__class_getitem__((*given, *defaults[len(given) : len(cls.__parameters__)]))


__all__ = (
    "ContextT",
    "InputT",
    "OutputT",
    "StateT",
    "StateT_co",
    "StateT_contra",
)
