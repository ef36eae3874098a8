"""Graphs as LangChain's drawable `Graph`, which makes Mermaid, ASCII, PNG and JSON. Loaded when one is asked for."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from langchain_core.runnables import Runnable, RunnableLambda, RunnableParallel, RunnableSequence
from langchain_core.runnables.graph import Edge, Graph, MermaidDrawMethod, Node

from surestep._drive.call import Call, ParallelCall, SequenceCall, is_runnable
from surestep.pregel._outline import outline
from surestep.pregel.draw import picture

__all__ = ("Drawing", "drawable")

_TEXT = ("curve_style", "node_colors", "wrap_label_n_words", "frontmatter_config")


class Drawing(Graph):
    """LangChain's graph, of which a picture can be made without sending it to somebody's server."""

    def draw_mermaid_png(
        self,
        *,
        output_file_path: str | None = None,
        draw_method: MermaidDrawMethod = MermaidDrawMethod.API,
        background_color: str | None = "white",
        **settings: Any,
    ) -> bytes:
        """The drawing as a PNG; written to a file as well if one is named.

        With the extra `draw`, Mermaid draws it in this process. A `draw_method` other than the default, a `base_url`
        or `proxies` are left to LangChain, and so is everything without that extra: by default the graph is then sent
        to mermaid.ink. settings: see LangChain's method; those of a request mean nothing where none is made.
        """
        elsewhere = draw_method is not MermaidDrawMethod.API or settings.get("base_url") or settings.get("proxies")
        if elsewhere or find_spec("mermaidx") is None:
            return super().draw_mermaid_png(
                output_file_path=output_file_path,
                draw_method=draw_method,
                background_color=background_color,  # type: ignore[arg-type]  # None is allowed further down
                **settings,
            )
        text = self.draw_mermaid(**{name: settings[name] for name in _TEXT if name in settings})
        png = picture(text, background=background_color)
        if output_file_path is not None:
            Path(output_file_path).write_bytes(png)
        return png


def drawable(graph: Any, config: Any, xray: int | bool) -> Graph:
    """The graph to draw. `xray`: with the nodes of the graphs inside it, True or how deep."""
    found = outline(graph)
    drawn = Drawing()
    for node in found.nodes:
        data = None if node.placeholder else runnable_of(node.runs, node.name)
        drawn.nodes[node.name] = Node(node.name, node.name, data, node.metadata)
    drawn.edges = [Edge(*edge) for edge in found.edges]
    if xray:
        for name, node in graph.nodes.items():
            if node.subgraphs:
                deeper = xray if isinstance(xray, bool) else xray - 1
                _expand(drawn, name, node.subgraphs[0].get_graph(config, xray=deeper))
    return drawn


def _expand(drawn: Graph, name: str, inner: Graph) -> None:
    """Put the nodes of a graph in the place of the node that runs it, if there is one way in and one out."""
    inner.trim_first_node()
    inner.trim_last_node()
    if inner.first_node() is None or inner.last_node() is None:
        return
    outer, drawn.edges = drawn.edges, []
    del drawn.nodes[name]
    first, last = drawn.extend(inner, prefix=name)
    assert first is not None and last is not None
    ends = [(last.id if e.source == name else None, first.id if e.target == name else None) for e in outer]
    moved = [edge.copy(source=source, target=target) for edge, (source, target) in zip(outer, ends, strict=True)]
    drawn.edges = [*moved, *drawn.edges]


def runnable_of(call: Call | None, name: str) -> Runnable[Any, Any]:
    """What a node runs, as a Runnable that does the same outside of a run (without injected parameters)."""
    if call is None:
        return RunnableLambda(_pass, name=name)
    if isinstance(call, SequenceCall):
        return RunnableSequence(*(runnable_of(step, step.name) for step in call.steps), name=name)
    if isinstance(call, ParallelCall):
        return RunnableParallel({key: runnable_of(step, key) for key, step in call.steps.items()})
    if is_runnable(call.target):
        return call.target  # type: ignore[no-any-return]
    return RunnableLambda(call.func or call.afunc, name=name)  # type: ignore[arg-type]


def _pass(value: Any) -> Any:
    return value
