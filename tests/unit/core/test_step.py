"""The superstep's rules (top of `_core/step.py`), played without a driver."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

import pytest

from surestep._core.commands import Abandon, Commit, Next, Save, Spawn
from surestep._core.ids import interrupt_id
from surestep.channels.binop import BinaryOperatorAggregate
from surestep.errors import GraphInterrupt, InvalidUpdateError
from surestep.types import Interrupt, RetryPolicy

from .player import Player, Spec, blueprint, start


def fan(*names: str, **policies: Any) -> Any:
    """`first` starts all of `names` at once; everybody appends to x."""
    nodes = {"first": Spec(["in"], "in"), **{name: Spec([f"branch:to:{name}"], **policies) for name in names}}
    return blueprint(nodes, {"x": BinaryOperatorAggregate(list, operator.add)})


def first(*names: str) -> Any:
    return lambda task, attempt: [(f"branch:to:{name}", None) for name in names]


def says(name: str) -> Any:
    return lambda task, attempt: [("x", [name])]


def fails(error: BaseException) -> Any:
    def node(task: Any, attempt: int) -> Sequence[tuple[str, Any]]:
        raise error

    return node


def started(player: Player) -> list[tuple[str, int]]:
    """Every attempt that was started, in order."""
    found: list[tuple[str, int]] = []
    for command in player.log:
        if isinstance(command, Next):
            found += [(task.name, 1) for task in command.starts]
        elif isinstance(command, Spawn):
            found.append((command.task.name, command.attempt))
    return found


def asks(task: Any, attempt: int) -> Sequence[tuple[str, Any]]:
    raise GraphInterrupt((Interrupt("?", id=interrupt_id(task.ns, 0)),))


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_writes_are_folded_by_path_whatever_the_order_of_the_ends(order: tuple[int, ...]) -> None:
    picks = iter(order)

    def pick(running: Sequence[Any]) -> int:
        return min(next(picks, 0), len(running) - 1) if len(running) > 1 else 0

    nodes = {"first": first("a", "b", "c"), "a": says("a"), "b": says("b"), "c": says("c")}
    outcome = Player(nodes, pick).play(start(fan("a", "b", "c"), "go"))
    assert outcome.output == {"x": ["a", "b", "c"]}


def test_rule_1_the_last_tasks_writes_go_with_the_checkpoint() -> None:
    player = Player({"first": first("a", "b"), "a": says("a"), "b": says("b")})
    player.play(start(fan("a", "b"), "go", saver=True))
    saves = [c.rows.task_path for c in player.log if isinstance(c, Save)]
    commits = [[row.task_path for row in c.rows] for c in player.log if isinstance(c, Commit)]
    assert saves == ["~__pregel_pull, a"]
    assert commits == [[], ["~__pregel_pull, first"], ["~__pregel_pull, b"]]


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_rule_2_a_failure_keeps_what_finished(failing: int) -> None:
    """The node that fails may be first, second or last to end: the others' writes are kept in any case."""
    nodes = {"first": first("a", "b", "c"), "a": fails(OSError("down")), "b": says("b"), "c": says("c")}
    picks = iter([0, failing, 0, 0])
    player = Player(nodes, lambda running: min(next(picks), len(running) - 1))
    with pytest.raises(OSError, match="down"):
        player.play(start(fan("a", "b", "c"), "go", saver=True))
    kept = {c.rows.task_path for c in player.log if isinstance(c, Save)}
    assert kept == {"~__pregel_pull, a", "~__pregel_pull, b", "~__pregel_pull, c"}
    assert not player.running


def test_rule_2_running_siblings_are_abandoned_after_a_failure() -> None:
    nodes = {"first": first("a", "b"), "a": fails(OSError("down")), "b": says("b")}
    player = Player(nodes)
    with pytest.raises(OSError, match="down"):
        player.play(start(fan("a", "b"), "go"))
    assert [c.task.name for c in player.log if isinstance(c, Abandon)] == ["b"]


def test_rule_3_a_pause_lets_siblings_finish_and_collects_all_questions() -> None:
    nodes = {"first": first("a", "b", "c"), "a": asks, "b": says("b"), "c": asks}
    player = Player(nodes)
    outcome = player.play(start(fan("a", "b", "c"), "go", saver=True))
    assert outcome.status == "interrupted"
    assert [question.value for question in outcome.questions] == ["?", "?"]
    assert outcome.output == {"x": ["b"]}
    assert not [c for c in player.log if isinstance(c, Abandon)]


def test_retries_clear_what_the_failed_attempt_wrote_and_are_counted() -> None:
    def flaky(task: Any, attempt: int) -> Sequence[tuple[str, Any]]:
        if attempt < 3:
            raise ConnectionError(str(attempt))
        return [("x", [attempt])]

    policy = RetryPolicy(initial_interval=1.0, backoff_factor=2.0, jitter=False)
    player = Player({"first": first("a"), "a": flaky})
    outcome = player.play(start(fan("a", retry=(policy,)), "go"))
    assert outcome.output == {"x": [3]}
    assert started(player) == [("first", 1), ("a", 1), ("a", 2), ("a", 3)]
    assert [c.delay for c in player.log if isinstance(c, Spawn)] == [1.0, 2.0]


def test_a_pause_is_never_retried() -> None:
    player = Player({"first": first("a"), "a": asks})
    outcome = player.play(start(fan("a", retry=(RetryPolicy(retry_on=Exception),)), "go", saver=True))
    assert outcome.status == "interrupted"
    assert started(player) == [("first", 1), ("a", 1)]


def test_rule_5_a_handler_starts_after_the_failure_is_kept_and_the_run_goes_on() -> None:
    graph = blueprint(
        {
            "first": Spec(["in"], "in"),
            "a": Spec(["branch:to:a"], handler="h"),
            "h": Spec([], is_handler=True),
        },
        {"x": BinaryOperatorAggregate(list, operator.add)},
    )
    nodes = {
        "first": first("a"),
        "a": fails(ValueError("no")),
        "h": lambda task, attempt: [("x", [task.failed[0].name])],
    }
    player = Player(nodes)
    outcome = player.play(start(graph, "go", saver=True))
    assert outcome.output == {"x": ["a"]}
    kinds = [
        (type(c).__name__, c.task.name if isinstance(c, Spawn) else c.urgent)
        for c in player.log
        if isinstance(c, (Save, Spawn))
    ]
    assert kinds[-2:] == [("Save", True), ("Spawn", "h")]


def test_two_writers_of_one_value_are_named() -> None:
    from surestep.channels.last_value import LastValue

    nodes = {"first": Spec(["in"], "in"), "a": Spec(["branch:to:a"]), "b": Spec(["branch:to:b"])}
    graph = blueprint(nodes, {"x": LastValue(int, "x")})
    player = Player({"first": first("a", "b"), "a": lambda t, n: [("x", 1)], "b": lambda t, n: [("x", 2)]})
    with pytest.raises(InvalidUpdateError, match=r"(?s)At key 'x'.*'a', 'b'"):
        player.play(start(graph, "go"))
