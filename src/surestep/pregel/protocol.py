"""What can stand in for a graph: everything that has its methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeAlias

from surestep.typing import ContextT, InputT, OfState, OutputT, StateT

if TYPE_CHECKING:
    from typing import Self

    from langchain_core.runnables.graph import Graph

    from surestep.types import RunnableConfig, StateSnapshot, StateUpdate

__all__ = ("PregelProtocol", "StreamProtocol")

StreamChunk: TypeAlias = tuple[tuple[str, ...], str, Any]
"""A part of a stream: namespace, mode, payload."""


class PregelProtocol(OfState, ABC, Generic[StateT, ContextT, InputT, OutputT]):
    """The methods of a graph. A local graph has them, and so has a client of one that runs elsewhere."""

    @abstractmethod
    def with_config(self, config: RunnableConfig | None = None, **kwargs: Any) -> Self:
        """The same graph with `config` under every config that it is run with."""

    @abstractmethod
    def get_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """The graph to draw. `xray`: with the nodes of graphs inside it; True, or how deep."""

    @abstractmethod
    async def aget_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """The graph to draw."""

    @abstractmethod
    def get_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        """The state of a thread."""

    @abstractmethod
    async def aget_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        """The state of a thread."""

    @abstractmethod
    def get_state_history(
        self,
        config: RunnableConfig,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[StateSnapshot]:
        """The states of a thread, newest first."""

    @abstractmethod
    def aget_state_history(
        self,
        config: RunnableConfig,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[StateSnapshot]:
        """The states of a thread, newest first."""

    @abstractmethod
    def bulk_update_state(self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]) -> RunnableConfig:
        """Edit a thread step by step; the config of the last checkpoint made."""

    @abstractmethod
    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Edit a thread step by step; the config of the last checkpoint made."""

    @abstractmethod
    def update_state(self, config: RunnableConfig, values: Any, as_node: str | None = None) -> RunnableConfig:
        """Edit a thread's state; the config of the new checkpoint."""

    @abstractmethod
    async def aupdate_state(self, config: RunnableConfig, values: Any, as_node: str | None = None) -> RunnableConfig:
        """Edit a thread's state; the config of the new checkpoint."""

    @abstractmethod
    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """Run and yield what happens."""

    @abstractmethod
    def astream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:
        """Run and yield what happens."""

    @abstractmethod
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run and return the output."""

    @abstractmethod
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run and return the output."""


class StreamProtocol:
    """A place to put parts of a stream, and the modes that it wants."""

    __slots__ = ("__call__", "modes")

    modes: set[str]

    def __init__(self, __call__: Callable[[StreamChunk], None], modes: set[str]) -> None:
        self.__call__ = __call__
        self.modes = modes
