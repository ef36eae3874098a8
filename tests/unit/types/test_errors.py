"""Every exception says what happened and what to do, and survives the way to another process."""

from __future__ import annotations

import pickle
from typing import Any

import langgraph.errors as theirs
import pytest

import surestep.errors as ours
from surestep.errors import (
    AlreadyAnswered,
    AmbiguousResume,
    EmptyInputError,
    ErrorCode,
    GraphDrained,
    GraphInterrupt,
    InvalidUpdateError,
    MissingNodeError,
    NodeCancelledError,
    NodeError,
    NodeInterrupt,
    NodeTimeoutError,
    ParentCommand,
    ReplayMismatch,
    ThreadConflict,
    UnknownInterruptError,
    create_error_message,
    is_invalid_resume,
)
from surestep.types import Command, Interrupt
from surestep.warnings import LangGraphDeprecatedSinceV10


def test_every_public_name_is_there_with_its_base() -> None:
    for name in theirs.__all__:
        mine, reference = getattr(ours, name), getattr(theirs, name)
        if isinstance(reference, type) and issubclass(reference, BaseException):
            bases = [base.__name__ for base in reference.__mro__]
            assert [base.__name__ for base in mine.__mro__] == bases
    assert [code.name for code in ErrorCode] == [code.name for code in theirs.ErrorCode]
    assert all(code.value == code.name for code in ErrorCode)


def test_a_message_ends_in_its_code() -> None:
    message = create_error_message(message="It broke.", error_code=ErrorCode.INVALID_CHAT_HISTORY)
    assert message.startswith("It broke.\n") and message.endswith("docs/errors.md#INVALID_CHAT_HISTORY")


ERRORS: list[BaseException] = [
    GraphDrained("deploy"),
    GraphInterrupt((Interrupt(1, "x"),)),
    ParentCommand(Command(goto="a", graph=Command.PARENT)),
    NodeTimeoutError("n", 1.5, kind="run", run_timeout=1.0),
    NodeTimeoutError("n", 1.5, kind="idle", run_timeout=9.0, idle_timeout=1.0),
    NodeCancelledError("n"),
    NodeCancelledError("n", "why"),
    UnknownInterruptError("m", reason="empty_map", interrupt_ids=["a"], pending_ids=["b"]),
    AlreadyAnswered("m", interrupt_ids=["a"], pending_ids=["b"]),
    AmbiguousResume("m", pending_ids=["b", "c"]),
    ThreadConflict("t", "child:1", "1", "2"),
    InvalidUpdateError("m", channel="k"),
    EmptyInputError("m"),
    ReplayMismatch("m", task="t", position=2),
    MissingNodeError("m", nodes=("a",), thread_id="t"),
]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_an_error_can_be_sent_to_another_process(error: BaseException) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and again.args == error.args and vars(again) == vars(error)


def test_a_conflict_says_what_to_do() -> None:
    message = str(ThreadConflict("order-7", "pay", None, "1ef"))
    for part in ("'order-7'", "'pay'", "none yet", "1ef", "get_state()"):
        assert part in message


def test_a_timeout_says_which_limit() -> None:
    run = NodeTimeoutError("pay", 1.5, kind="run", run_timeout=1.0)
    idle = NodeTimeoutError("pay", 1.5, kind="idle", run_timeout=9.0, idle_timeout=1.0)
    for mine, reference in (
        (run, theirs.NodeTimeoutError("pay", 1.5, kind="run", run_timeout=1.0)),
        (idle, theirs.NodeTimeoutError("pay", 1.5, kind="idle", run_timeout=9.0, idle_timeout=1.0)),
    ):
        assert vars(mine) == vars(reference)
        assert str(mine) == str(reference)
        assert not isinstance(mine, TimeoutError)


@pytest.mark.parametrize("limits", [{"kind": "run"}, {"kind": "idle", "run_timeout": 1.0}, {"kind": "odd"}])
def test_a_timeout_without_a_limit_is_a_mistake(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="kind"):
        NodeTimeoutError("n", 1.0, **limits)


def test_answers_that_do_not_fit() -> None:
    assert AlreadyAnswered("m").reason == "not_pending"
    assert AmbiguousResume("m").reason == "ambiguous"
    # LangGraph raises a RuntimeError for an ambiguous answer.
    assert issubclass(AmbiguousResume, RuntimeError)
    assert UnknownInterruptError("m", reason="empty_map", interrupt_ids=["a"]).interrupt_ids == ("a",)


def test_an_invalid_answer_is_marked() -> None:
    error = ValueError("no")
    assert not is_invalid_resume(error)
    ours.mark_invalid_resume(error)
    assert is_invalid_resume(error)


def test_a_node_error_is_a_record() -> None:
    error = ValueError("no")
    assert NodeError("n", error) == NodeError("n", error)
    assert not isinstance(NodeError("n", error), BaseException)


def test_the_old_interrupt_warns() -> None:
    with pytest.warns(LangGraphDeprecatedSinceV10, match="NodeInterrupt is deprecated") as caught:
        error = NodeInterrupt("v", "x")
    assert caught[0].filename == __file__
    assert error.args == ([Interrupt("v", "x")],)
