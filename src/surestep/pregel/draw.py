"""A compiled graph as Mermaid text, and that text as a picture. It needs no LangChain, and no network.

`get_graph()` gives LangChain's drawing of the same graph, with LangChain's ways to show it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from surestep.constants import END, START
from surestep.pregel._outline import outline

__all__ = ("mermaid_ascii", "mermaid_png", "mermaid_text")

_WORDS_OF_MERMAID: Final = {*"end graph flowchart subgraph style class click default linkstyle".split()}
_SHAPES: Final = {START: "([start])", END: "([end])"}
_CODES: Final = {ord(character): f"#{ord(character)};" for character in "#&<>`"} | {ord('"'): "#quot;"}


def mermaid_text(graph: Any, *, xray: int | bool = False) -> str:
    """The graph as a Mermaid flowchart, ready for a Markdown page.

    Solid arrows always fire. Dotted ones may: a conditional edge, a node's `Command(goto=...)`, and, labelled
    `error`, the way to an error handler. A conditional edge whose targets nobody declared leads to a `?`.
    `graph` is what `StateGraph.compile()` returned, or another `Pregel`; of that its ways are drawn as they can be
    followed. xray: graphs that nodes run are drawn in boxes: True, or how many levels deep.
    """
    drawing = _Drawing()
    drawing.add(graph, "", xray, "    ")
    return "\n".join(["flowchart TD", *drawing.nodes, *drawing.edges])


def mermaid_png(graph: Any, *, xray: int | bool = False, scale: float = 2.0) -> bytes:
    """The drawing of `mermaid_text` as a PNG with a white ground, made by Mermaid itself in this process.

    scale: pixels for each of Mermaid's, greater than 0. ImportError without the extra `draw`.
    """
    return picture(mermaid_text(graph, xray=xray), scale=scale)


def picture(text: str, *, scale: float = 2.0, background: str | None = "white") -> bytes:
    """Mermaid's text as a PNG. background: a CSS colour, or None for a transparent one. RuntimeError for what Mermaid
    does not understand, ImportError without the extra `draw`.
    """
    try:
        import mermaidx  # type: ignore[import-untyped]
    except ModuleNotFoundError as missing:
        raise _not_installed(missing) from None
    png: bytes = mermaidx.render(text).png(scale=scale, background=background)
    return png


def mermaid_ascii(graph: Any, *, xray: int | bool = False) -> str:
    """The drawing of `mermaid_text` in characters of ASCII, for a terminal. ImportError without the extra `draw`."""
    try:
        import termaid
    except ModuleNotFoundError as missing:
        raise _not_installed(missing) from None
    lines: str = termaid.render(mermaid_text(graph, xray=xray), use_ascii=True)
    return "\n".join(line.rstrip() for line in lines.splitlines())


def _not_installed(missing: ModuleNotFoundError) -> ImportError:
    package = missing.name
    return ImportError(f"This drawing needs the package {package}: pip install 'surestep[draw]'", name=package)


class _Edge(NamedTuple):
    """A way; `end` is None where nobody knows it, `sure` says whether it is always taken."""

    start: str
    end: str | None
    label: str
    sure: bool


class _Drawing:
    """The lines of a flowchart, and the word that stands for each of its nodes."""

    def __init__(self) -> None:
        self.nodes: list[str] = []
        self.edges: list[str] = []
        self.words: dict[str, str] = {}  # by the node's path: the nodes it is inside of and its name

    def add(self, graph: Any, prefix: str, xray: int | bool, indent: str) -> None:
        """Draw the graph whose nodes' paths begin with `prefix`."""
        names, edges = _content(graph)
        inner = dict(_graphs_inside(graph)) if xray else {}
        enter, leave = dict[str, str](), dict[str, str]()
        for name in names:
            enter[name] = leave[name] = word = self._word(prefix + name)
            if name in inner:
                box = f"{prefix}{name}:"
                self.nodes.append(f'{indent}subgraph {word} ["{_quoted(name)}"]')
                self.add(inner[name], box, xray if isinstance(xray, bool) else xray - 1, indent + "    ")
                self.nodes.append(f"{indent}end")
                enter[name], leave[name] = self.words.get(box + START, word), self.words.get(box + END, word)
            else:
                self.nodes.append(indent + word + (_SHAPES.get(name) or f'["{_quoted(name)}"]'))
        for start, end, label, sure in edges:
            arrow = "-->" if sure else "-.->"
            said = f'|"{_quoted(label)}"|' if label else ""
            target = f"{self._unknown()}{{{{?}}}}" if end is None else enter[end]
            self.edges.append(f"    {leave[start]} {arrow}{said} {target}")

    def _unknown(self) -> str:
        number = 1 + sum(path.startswith("?") for path in self.words)
        return self._word(f"?{number}", f"unknown{number}")

    def _word(self, path: str, wanted: str | None = None) -> str:
        """A word that Mermaid accepts for a node: different for different nodes, none of Mermaid's own."""
        word = wanted or re.sub(r"\W", "_", path, flags=re.ASCII)
        if word.lower() in _WORDS_OF_MERMAID or word[:1].isdigit():
            word = f"n_{word}"
        while word in self.words.values():
            word += "_"
        self.words[path] = word
        return word


def _content(graph: Any) -> tuple[list[str], list[_Edge]]:
    """Names of nodes, and edges in their order: what the builder knows, or what the channels tell."""
    builder = getattr(graph, "builder", None)
    if builder is not None:
        handlers = graph.node_error_handler_map
        names = list(dict.fromkeys([START, *builder.nodes, *handlers.values(), END]))
        return names, list(_built(builder, handlers, names))
    found = outline(graph)
    edges = [_Edge(edge.source, edge.target, edge.label or "", not edge.conditional) for edge in found.edges]
    return [node.name for node in found.nodes], edges


def _graphs_inside(graph: Any) -> Iterator[tuple[str, Any]]:
    """(node, the graph that it runs), where that graph is in this process."""
    return ((name, inner) for name, inner in graph.get_subgraphs() if hasattr(inner, "blueprint"))


def _built(builder: Any, handlers: Mapping[str, str], names: Iterable[str]) -> Iterator[_Edge]:
    order = {name: place for place, name in enumerate(names)}
    static = [*builder.edges, *((start, end) for starts, end in builder.waiting_edges for start in starts)]
    for start, end in sorted(static, key=lambda edge: (order[edge[0]], order[edge[1]])):
        yield _Edge(start, end, "", True)
    for start, branches in builder.branches.items():
        for branch in branches.values():
            if branch.ends is None:
                yield _Edge(start, None, "", False)
                continue
            for answer, end in branch.ends.items():
                yield _Edge(start, end, "" if answer == end else str(answer), False)
    for name, spec in builder.nodes.items():
        for end, label in _labelled(spec.ends):
            yield _Edge(name, end, label, False)
    for name, handler in handlers.items():
        yield _Edge(name, handler, "error", False)


def _labelled(ends: Mapping[str, str] | Iterable[str] | None) -> Iterable[tuple[str, str]]:
    """A node's declared destinations: a mapping from node to label, or node names alone."""
    if isinstance(ends, Mapping):
        return ends.items()
    return [(end, "") for end in ends or ()]


def _quoted(text: str) -> str:
    """Text that Mermaid shows as it is, and does not take for markup."""
    return text.translate(_CODES)
