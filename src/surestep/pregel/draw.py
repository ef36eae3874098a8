"""A compiled graph as Mermaid text: what the builder knows, no more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

__all__ = ("mermaid_text",)

_WORDS_OF_MERMAID = {*"end graph flowchart subgraph style class click default linkstyle".split()}


def mermaid_text(graph: Any) -> str:
    """The graph as a Mermaid flowchart, ready for a Markdown page.

    Solid arrows always fire. Dotted ones may: a conditional edge, a node's `Command(goto=...)`, and, labelled
    `error`, the way to an error handler. A conditional edge whose targets nobody declared leads to a `?`.
    `graph` is what `StateGraph.compile()` returned. Nodes inside of subgraphs are not drawn.
    """
    builder = graph.builder
    names = _names(["__start__", *builder.nodes, "__end__"])
    lines = ["flowchart TD"]
    for name, word in names.items():
        inner = {"__start__": "([start])", "__end__": "([end])"}.get(name) or f'["{_quoted(name)}"]'
        lines.append(f"    {word}{inner}")
    unknown = 0
    for start, end, label, sure in _edges(builder, graph.node_error_handler_map):
        arrow = "-->" if sure else "-.->"
        if end is None:
            unknown += 1
            target = f"unknown{unknown}{{{{?}}}}"
        else:
            target = names.get(end, end)
        said = f'|"{_quoted(label)}"|' if label else ""
        lines.append(f"    {names[start]} {arrow}{said} {target}")
    return "\n".join(lines)


def _edges(builder: Any, handlers: Mapping[str, str]) -> Iterator[tuple[str, str | None, str, bool]]:
    """(from, to or None, label, does it always fire) of every edge, in the order of the nodes."""
    order = {name: place for place, name in enumerate(["__start__", *builder.nodes, "__end__"])}
    static = [*builder.edges, *((start, end) for starts, end in builder.waiting_edges for start in starts)]
    for start, end in sorted(static, key=lambda edge: (order[edge[0]], order[edge[1]])):
        yield start, end, "", True
    for start, branches in builder.branches.items():
        for branch in branches.values():
            if branch.ends is None:
                yield start, None, "", False
                continue
            for answer, end in branch.ends.items():
                yield start, end, "" if answer == end else str(answer), False
    for name, spec in builder.nodes.items():
        for end, label in _labelled(spec.ends):
            yield name, end, label, False
    for name, handler in handlers.items():
        yield name, handler, "error", False


def _labelled(ends: Mapping[str, str] | Iterable[str] | None) -> Iterable[tuple[str, str]]:
    """A node's declared destinations: a mapping from node to label, or node names alone."""
    if isinstance(ends, Mapping):
        return ends.items()
    return [(end, "") for end in ends or ()]


def _names(nodes: Iterable[str]) -> dict[str, str]:
    """A word that Mermaid accepts for every node: different for different nodes, none of Mermaid's own."""
    words: dict[str, str] = {}
    for node in nodes:
        word = re.sub(r"\W", "_", node, flags=re.ASCII)
        if word.lower() in _WORDS_OF_MERMAID or word[:1].isdigit():
            word = f"n_{word}"
        while word in words.values():
            word += "_"
        words[node] = word
    return words


def _quoted(text: str) -> str:
    return text.replace('"', "#quot;")
