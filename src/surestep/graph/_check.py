"""What is checked before a graph is compiled. Errors name the node, the edge and the remedy."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from surestep.constants import END, START

if TYPE_CHECKING:
    from surestep.graph.state import StateGraph


class UnreachableJoinWarning(UserWarning):
    """A join may wait for a node that the run never starts, so that the run ends without it.

    Filter it out (`warnings.filterwarnings("ignore", category=UnreachableJoinWarning)`) when the branch that
    it names always chooses all of the join's sources.
    """


def check_names(builder: StateGraph[Any, Any, Any, Any], interrupt: Sequence[str] = ()) -> None:
    """Raise ValueError for an edge, a branch or an interrupt that names a node which is not there."""
    starts = [start for start, _ in builder.edges]
    starts += [start for sources, _ in builder.waiting_edges for start in sources]
    starts += [start for start, branches in builder.branches.items() if branches]
    for start in starts:
        if start not in builder.nodes and start != START:
            raise ValueError(
                f"Found edge starting at unknown node '{start}': add it with add_node({start!r}, ...), or "
                f"correct the name. {_known(builder)}"
            )
    if START not in starts:
        raise ValueError(
            "Graph must have an entrypoint: add at least one edge from START to another node, "
            "as in add_edge(START, 'first')."
        )
    _check_branches(builder)
    for start, end in _ends(builder):
        if end not in builder.nodes and end != END:
            raise ValueError(
                f"Found edge ending at unknown node `{end}`: the edge from {start!r} needs "
                f"add_node({end!r}, ...), or another name. {_known(builder)}"
            )
    for name in interrupt:
        if name not in builder.nodes:
            raise ValueError(f"Interrupt node `{name}` not found. {_known(builder)}")


def _check_branches(builder: StateGraph[Any, Any, Any, Any]) -> None:
    for start, branches in builder.branches.items():
        for name, branch in branches.items():
            for end in (branch.ends or {}).values():
                if end not in builder.nodes and end != END:
                    raise ValueError(
                        f"At '{start}' node, '{name}' branch found unknown target '{end}': add it with "
                        f"add_node({end!r}, ...), or correct the path map. {_known(builder)}"
                    )


def _ends(builder: StateGraph[Any, Any, Any, Any]) -> Iterator[tuple[str, str]]:
    yield from builder.edges
    for sources, end in builder.waiting_edges:
        yield "+".join(sources), end
    for name, spec in builder.nodes.items():
        for end in spec.ends:
            yield name, end


def _known(builder: StateGraph[Any, Any, Any, Any]) -> str:
    names = list(builder.nodes)
    shown = ", ".join(map(repr, names[:12]))
    return f"Nodes: {shown or 'none yet'}{', ...' if len(names) > 12 else ''}."


# --- joins that may wait for ever --------------------------------------------------------------------------

Choice = tuple[str, str, Sequence[str]]  # the node, what it is called in a message, where it may go
Join = tuple[Sequence[str], str]


def warn_of_dead_joins(builder: StateGraph[Any, Any, Any, Any], stacklevel: int) -> None:
    """Warn of joins of which some sources run while another may not: the run then ends, and nobody is told.

    Every declared choice (a branch, or a node with several destinations) is tried each way, with all others
    going every way at once: a join that some of its sources reach and some don't is reported. A choice that
    comes round again before the join is left alone, since it may go the other way the next time.
    """
    if not builder.waiting_edges:
        return
    ways = _Ways(builder)
    for join in builder.waiting_edges:
        for place, (start, _, ends) in enumerate(ways.choices):
            if len(ends) < 2 or start in ways.reached(start, {}, join, loose=True):
                continue
            found = _starved(ways, join, place)
            if found is not None:
                text = _dead_join(join, ways.choices[place], *found)
                warnings.warn(text, UnreachableJoinWarning, stacklevel + 1)
                break


class _Ways:
    """Where control may go from each node: edges that always fire, declared choices, and joins."""

    def __init__(self, builder: StateGraph[Any, Any, Any, Any]) -> None:
        self.joins: list[Join] = list(builder.waiting_edges)
        self.choices: list[Choice] = []
        self.sure: dict[str, list[str]] = {}
        self.chosen_at: dict[str, list[int]] = {}
        for start, end in builder.edges:
            self.sure.setdefault(start, []).append(end)
        for start, branches in builder.branches.items():
            for name, branch in branches.items():
                if branch.ends is None:  # may lead anywhere: counted as leading everywhere
                    self.sure.setdefault(start, []).extend(builder.nodes)
                else:
                    ends = list(dict.fromkeys(branch.ends.values()))
                    self.choices.append((start, f"the branch {name!r} of {start!r}", ends))
        for name, spec in builder.nodes.items():
            if spec.ends:
                self.choices.append((name, f"the command of {name!r}", list(spec.ends)))
            if spec.error_handler_node is not None:
                self.sure.setdefault(name, []).append(spec.error_handler_node)
        for place, (start, _, _) in enumerate(self.choices):
            self.chosen_at.setdefault(start, []).append(place)

    def reached(self, start: str, chosen: Mapping[int, str], but: Join, loose: bool = False) -> set[str]:
        """The nodes that may run after `start` if the join `but` doesn't fire.

        `chosen`: choices that go one way only, by their place. `loose`: joins fire for any of their sources.
        """
        found: set[str] = set()
        pending = [start]
        while pending:
            for after in self._after(pending.pop(), chosen, but, found, loose):
                if after not in found and after != END:
                    found.add(after)
                    pending.append(after)
        return found

    def _after(self, node: str, chosen: Mapping[int, str], but: Join, found: set[str], loose: bool) -> Iterator[str]:
        yield from self.sure.get(node, ())
        for place in self.chosen_at.get(node, ()):
            yield from [chosen[place]] if place in chosen else self.choices[place][2]
        for join in self.joins:
            sources, end = join
            if join != but and node in sources and (loose or found.issuperset(sources)):
                yield end


def _starved(ways: _Ways, join: Join, place: int) -> tuple[str, list[str]] | None:
    """A way for the choice at `place` to go with which the join waits in vain, and for whom."""
    sources, _ = join
    for way in ways.choices[place][2]:
        reached = ways.reached(START, {place: way}, join)
        missing = [source for source in sources if source not in reached]
        if missing and len(missing) < len(sources):
            return way, missing
    return None


def _dead_join(join: Join, choice: Choice, way: str, missing: Sequence[str]) -> str:
    sources, end = join
    runs = ", ".join(repr(source) for source in sources if source not in missing)
    waits = ", ".join(map(repr, missing))
    return (
        f"The join {list(sources)} -> {end!r} may never fire: when {choice[1]} goes to {way!r} only, {runs} "
        f"may run but {waits} does not, and the run ends without {end!r}. Let the branch choose all sources "
        f"of the join, or give {end!r} defer=True and a plain edge from each of them."
    )
