"""A thread does what a small model of it says: turns, answers, failures, forks, edits, new processes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from harness.engine import Boom, Engine
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from property.model import Bodies, Line, Script, answer

KINDS = st.sampled_from(["say", "say", "ask", "fail"])
SCRIPTS = st.lists(st.lists(KINDS, min_size=1, max_size=3), min_size=1, max_size=3)


class Threads(RuleBasedStateMachine):
    """One thread. `line` is the model of its head."""

    line: Line | None = None

    @initialize(
        driver=st.sampled_from(["sync", "async"]),
        savers=st.sampled_from(["memory", "sqlite"]),
        durability=st.sampled_from(["sync", "async", "exit"]),
    )
    def begin(self, driver: str, savers: str, durability: str) -> None:
        self.E = Engine("surestep", driver, savers)
        self.durability, self.broken, self.turns = durability, set[str](), 0
        self.saver = self.E.saver()
        self.bodies = Bodies(self.E, self.broken)
        self.app = self.bodies.build(self.saver)

    def teardown(self) -> None:
        if hasattr(self, "E"):
            self.E.__exit__()

    # -- what happens to the thread -------------------------------------------------------------------------

    def run(self, given: Any, config: Any = None) -> None:
        """Runs the thread, and compares how it ended with what the model says."""
        line = self.bodies.line = self.line
        assert line is not None
        config = config or self.E.config()
        result = self.E.attempt(self.E.invoke, self.app, given, config, durability=self.durability)
        line.advance()
        fails = [key for key, kind in line.now().items() if kind == "fail" and key in self.broken]
        if fails:
            assert isinstance(result, Boom) and result.args[0] in fails, result
        else:
            assert isinstance(result, dict), repr(result)
            asked = sorted(i.value for i in result.get("__interrupt__", ()))
            assert asked == line.waiting()
            assert bool(asked) != line.over, "it stopped, and nobody knows why"
            assert result["log"] == line.live()

    @rule(script=SCRIPTS, broken=st.booleans())
    def new_turn(self, script: Script, broken: bool) -> None:
        """An input: what was left over is dropped, what had ended in the step under way too."""
        self._begin(script, broken, self.line.log if self.line else [])
        assert self.line is not None
        self.run(self._input())

    def _begin(self, script: Script, broken: bool, log: list[str]) -> None:
        self.turns += 1
        turn = f"t{self.turns}"
        self.line = Line(turn, script, 0, [*log, turn])
        if broken:
            self.broken.update(key for at in range(len(script)) for key in self.line.keys(at))

    def _input(self) -> Any:
        assert self.line is not None
        return {"log": [self.line.turn], "turn": self.line.turn, "script": self.line.script, "at": 0}

    @precondition(lambda self: self.line and self.line.waiting())
    @rule(data=st.data())
    def answer_some(self, data: Any) -> None:
        assert self.line is not None
        waiting = {i.value: i.id for i in self.E.state(self.app, self.E.config()).interrupts}
        chosen = data.draw(st.lists(st.sampled_from(self.line.waiting()), min_size=1, unique=True))
        before = {key: self.line.starts[key] for key in self.line.waiting() if key not in chosen}
        self.run(self.E.Command(resume={waiting[key]: answer(key) for key in chosen}))
        assert all(self.line.starts[key] == count for key, count in before.items()), "started without an answer"

    @precondition(lambda self: self.line and len(self.line.waiting()) == 1)
    @rule()
    def answer_the_only_one(self) -> None:
        assert self.line is not None
        self.run(self.E.Command(resume=answer(self.line.waiting()[0])))

    @precondition(lambda self: self.broken)
    @rule()
    def repair(self) -> None:
        self.broken.clear()

    @precondition(lambda self: self.line and not self.line.over and not self.line.waiting())
    @rule()
    def go_on(self) -> None:
        self.run(None)

    @precondition(lambda self: self.line and self.line.over)
    @rule()
    def go_on_at_the_end(self) -> None:
        """Nothing is left to do, and nothing is done."""
        assert self.line is not None
        rows = len(self.E.rows(self.saver, self.E.config()))
        self.run(None)
        assert len(self.E.rows(self.saver, self.E.config())) == rows

    @precondition(lambda self: self.line and self.line.over)
    @rule(word=st.sampled_from(["edit", "other"]))
    def edit(self, word: str) -> None:
        assert self.line is not None
        # `plan`: its edges lead to the end again, as all of the script is done.
        self.E.update(self.app, self.E.config(), {"log": [word]}, as_node="plan")
        self.line.log.append(word)

    @precondition(lambda self: self.line)
    @rule(data=st.data())
    def fork(self, data: Any) -> None:
        """A run from an older checkpoint: its step runs again, all of it, and the thread goes on from there."""
        past = [s for s in self.E.history(self.app, self.E.config()) if set(s.next) == {"work"}]
        if not past:
            return
        old = past[data.draw(st.integers(0, len(past) - 1))]
        values = old.values
        self.line = Line(values["turn"], values["script"], values["at"], list(values["log"]))
        self.run(None, old.config)

    @precondition(lambda self: self.line)
    @rule(data=st.data(), script=SCRIPTS)
    def fork_with_an_input(self, data: Any, script: Script) -> None:
        past = [s for s in self.E.history(self.app, self.E.config()) if s.values.get("log")]
        if not past:
            return
        old = past[data.draw(st.integers(0, len(past) - 1))]
        self._begin(script, False, old.values["log"])
        self.run(self._input(), old.config)

    @rule()
    def new_process(self) -> None:
        """Everything but the saver is made anew."""
        self.bodies = Bodies(self.E, self.broken)
        self.app = self.bodies.build(self.saver)

    # -- what is always true --------------------------------------------------------------------------------

    @invariant()
    def what_has_ended_has_ended_once(self) -> None:
        if self.line:
            assert set(self.line.ends.values()) <= {1}, self.line.ends

    @invariant()
    def the_state_is_that_of_the_model(self) -> None:
        if not self.line:
            return
        state = self.E.state(self.app, self.E.config())
        assert state.values["log"] == self.line.live()
        assert sorted(i.value for i in state.interrupts) == self.line.waiting()
        left = [key for key in self.line.now() if not self.line.ends[key]]
        assert len(state.next) == len(left)

    @invariant()
    def the_past_is_a_tree_in_order(self) -> None:
        if not self.line:
            return
        rows = self.E.rows(self.saver, self.E.config())
        ids = [row.config["configurable"]["checkpoint_id"] for row in rows]
        assert ids == sorted(set(ids), reverse=True)
        steps = {row.config["configurable"]["checkpoint_id"]: row.metadata["step"] for row in rows}
        for row in rows:
            if row.parent_config:
                parent = row.parent_config["configurable"]["checkpoint_id"]
                assert parent in steps, "a checkpoint without its parent"
                assert parent < row.config["configurable"]["checkpoint_id"]
                assert steps[parent] < row.metadata["step"]


QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
Threads.TestCase.settings = settings(max_examples=40, stateful_step_count=12, suppress_health_check=QUIET)


class TestThreads(Threads.TestCase):  # type: ignore[name-defined,misc]
    """The state machine, as pytest finds it."""


@pytest.mark.slow
def test_many_threads() -> None:
    many = settings(max_examples=600, stateful_step_count=25, suppress_health_check=QUIET)
    run_state_machine_as_test(Threads, settings=many)


def test_the_model_itself() -> None:
    line = Line("t", [["say", "ask"], ["say"]], 0, ["t"])
    whole = copy.deepcopy(line)
    line.ends.update(["t.0.0"])
    line.asked.add("t.0.1")
    line.advance()
    assert (line.at, line.live(), line.waiting()) == (0, ["t", "t.0.0"], ["t.0.1"])
    line.ends.update(["t.0.1", "t.1.0"])
    line.advance()
    assert line.over and line.log == whole.end() == ["t", "t.0.0", "t.0.1=<t.0.1>", "t.1.0"]
