"""The methods that show a graph as a drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_core.runnables.graph import Graph

    from surestep.types import RunnableConfig


class DrawMethods:
    """What a graph offers about its own shape."""

    def get_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """The graph to draw, as LangChain's `Graph`: `draw_mermaid()`, `draw_ascii()`, `draw_png()`, `to_json()`.

        xray: with the nodes of graphs inside it: True, or how many levels deep. Dotted edges are those that a node or
        a branch decides on; a branch that doesn't say where it may lead has none. ImportError without langchain-core;
        `surestep.pregel.draw.mermaid_text(graph)` does without.
        """
        try:
            from surestep.integrations.drawing import drawable
        except ModuleNotFoundError as missing:
            if (missing.name or "").partition(".")[0] != "langchain_core":
                raise
            raise ImportError(
                "get_graph() returns a drawing of langchain-core, which is not installed: pip install "
                "'surestep[langchain]'. For Mermaid text alone, surestep.pregel.draw.mermaid_text(graph) needs nothing."
            ) from missing
        return drawable(self, config, xray)

    async def aget_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """As `get_graph`."""
        return self.get_graph(config, xray=xray)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """How notebooks show the graph: drawn, where LangChain is installed."""
        shown = {"text/plain": repr(self)}
        try:
            return {**shown, "text/vnd.mermaid": self.get_graph().draw_mermaid()}
        except ImportError:
            return shown
