"""add_messages with LangChain's messages as LangGraph's does it, and without LangChain on dicts."""

from __future__ import annotations

import copy
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, get_type_hints

import langgraph.graph.message as theirs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, RemoveMessage

import surestep.graph.message as ours
from surestep._context import current_task
from surestep.graph.message import REMOVE_ALL_MESSAGES, MessagesState, add_messages, push_message
from surestep.warnings import LangGraphDeprecatedSinceV10

# Like LangGraph's

IDS = st.sampled_from(["1", "2", "3"])
SAID = st.builds(lambda id, text: HumanMessage(text, id=id), IDS, st.sampled_from("xyz"))
REMOVED = st.builds(lambda id: RemoveMessage(id=id), st.sampled_from(["1", "2", REMOVE_ALL_MESSAGES]))
CHUNKS = st.builds(lambda id, text: AIMessageChunk(text, id=id), IDS, st.sampled_from("xyz"))
DICTS = st.builds(lambda id, text: {"role": "ai", "content": text, "id": id}, IDS, st.sampled_from("xyz"))
LEFT = st.lists(SAID | CHUNKS | DICTS, max_size=4)
RIGHT = st.lists(SAID | CHUNKS | DICTS | REMOVED, max_size=5)


def outcome(reducer: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return reducer(*copy.deepcopy(args), **kwargs)
    except Exception as error:
        return type(error).__name__


@given(LEFT, RIGHT)
def test_merging_is_alike(left: list[Any], right: list[Any]) -> None:
    assert outcome(ours.add_messages, left, right) == outcome(theirs.add_messages, left, right)


# No chunks and no mixtures: LangGraph keeps the former as they are, and fails for some of the latter.
@given(st.lists(SAID, max_size=4), st.lists(SAID | REMOVED | st.lists(SAID | REMOVED, max_size=3), max_size=4))
def test_reducing_a_delta_is_alike(left: list[Any], writes: list[Any]) -> None:
    mine = outcome(ours._messages_delta_reducer, left, writes)
    assert mine == outcome(theirs._messages_delta_reducer, left, writes)


@pytest.mark.parametrize(
    "given",
    [
        "hello",
        ("user", "hello"),
        {"role": "assistant", "content": "hello"},
        {"type": "human", "content": "hello", "id": "1"},
        AIMessageChunk("hello", id="1"),
        [("ai", "a"), "b", HumanMessage("c", id="c")],
        (HumanMessage("a"), HumanMessage("b")),
        [None],
        {"content": "no role"},
        [5],
    ],
    ids=repr,
)
def test_what_counts_as_a_message_is_alike(given: Any) -> None:
    def bare(messages: Any) -> Any:
        # Ids that were made up differ each time.
        return messages if isinstance(messages, str) else [(type(m), m.content) for m in messages]

    assert bare(outcome(ours.add_messages, [], given)) == bare(outcome(theirs.add_messages, [], given))


@pytest.mark.parametrize("args", [([],), (None, []), ([], [])], ids=repr)
@pytest.mark.parametrize("format", [None, "langchain-openai", "odd"])
def test_arguments_are_alike(args: Any, format: Any) -> None:
    assert outcome(ours.add_messages, *args, format=format) == outcome(theirs.add_messages, *args, format=format)


def test_a_format_makes_a_reducer() -> None:
    content = [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]
    said = [HumanMessage(content, id="1"), AIMessage("b", id="2")]
    mine = ours.add_messages(format="langchain-openai")([], said)
    assert mine == theirs.add_messages(format="langchain-openai")([], said)
    assert ours.add_messages()([], said) == said


def test_ids_are_given_in_place_and_lists_are_not_changed() -> None:
    message, left = HumanMessage("a"), [HumanMessage("b", id="1")]
    merged = add_messages(left, [message])
    assert merged[1] is message and message.id is not None
    assert left == [HumanMessage("b", id="1")] and merged is not left


def test_removing_what_is_not_there_says_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"ID that doesn't exist \('9'\).*REMOVE_ALL_MESSAGES"):
        add_messages([HumanMessage("a", id="1")], [RemoveMessage(id="9")])


# Without LangChain


@contextmanager
def langchain_missing() -> Iterator[None]:
    """As if LangChain were not installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "langchain_core", None)
        ours._langchain.cache_clear()
        yield
    ours._langchain.cache_clear()


@pytest.fixture
def no_langchain() -> Iterator[None]:
    with langchain_missing():
        yield


def said(id: str, content: str = "x", role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": content, "id": id}


@pytest.mark.usefixtures("no_langchain")
class TestDicts:
    def test_new_ids_come_last_and_known_ones_stay_in_place(self) -> None:
        merged = add_messages([said("1"), said("2")], [said("1", "new"), said("3")])
        assert merged == [said("1", "new"), said("2"), said("3")]

    def test_messages_without_an_id_get_one(self) -> None:
        mine = {"role": "user", "content": "a"}
        merged = add_messages([], [mine, ("assistant", "b"), "c"])
        assert [(m["role"], m["content"]) for m in merged] == [("user", "a"), ("assistant", "b"), ("user", "c")]
        assert len({m["id"] for m in merged}) == 3
        assert "id" not in mine

    def test_one_message_need_not_be_a_list(self) -> None:
        assert add_messages([], said("1")) == [said("1")]

    def test_removing(self) -> None:
        left = [said("1"), said("2")]
        assert add_messages(left, {"role": "remove", "id": "1"}) == [said("2")]
        assert add_messages(left, [{"role": "remove", "id": "1"}, said("1", "again")]) == [
            said("1", "again"),
            said("2"),
        ]
        everything = {"role": "remove", "id": REMOVE_ALL_MESSAGES}
        assert add_messages(left, [said("3"), everything, said("4")]) == [said("4")]
        with pytest.raises(ValueError, match="doesn't exist"):
            add_messages(left, {"role": "remove", "id": "9"})

    def test_a_delta(self) -> None:
        writes = [[said("1", "new"), {"role": "remove", "id": "9"}], said("3")]
        assert ours._messages_delta_reducer([said("1")], writes) == [said("1", "new"), said("3")]

    @pytest.mark.parametrize("odd", [5, None, {"content": "a"}, ("user", "a", "b")], ids=repr)
    def test_what_is_no_message(self, odd: Any) -> None:
        with pytest.raises(TypeError, match=r"Not a message.*pip install langchain-core"):
            add_messages([], [odd])

    def test_a_format_needs_langchain(self) -> None:
        with pytest.raises(ImportError, match=r"add_messages\(format='langchain-openai'\) needs LangChain"):
            add_messages([], [said("1")], format="langchain-openai")


def test_dicts_and_langchain_agree() -> None:
    """The same script on dicts gives what LangChain's messages give."""
    for seed in range(50):
        rng = random.Random(seed)
        left = [said(str(i)) for i in range(5)]
        right = [
            {"role": "remove", "id": str(rng.randrange(5)), "content": ""}
            if rng.random() < 0.4
            else said(str(rng.randrange(8)), rng.choice("abc"))
            for _ in range(4)
        ]
        reference = [(m.id, m.content) for m in add_messages(left, right)]
        with langchain_missing():
            mine = [(m["id"], m["content"]) for m in add_messages(left, right)]
        assert mine == reference, right


def test_empty_lists_need_no_langchain() -> None:
    code = (
        "import sys; from surestep.graph.message import add_messages; assert add_messages([], []) == [];"
        "sys.exit('langchain_core' in sys.modules)"
    )
    env = {"PYTHONPATH": ":".join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)


# The rest of the module


def test_the_state_has_one_reducer() -> None:
    hint = get_type_hints(MessagesState, include_extras=True)["messages"]
    assert hint.__metadata__ == (add_messages,)


def test_the_graph_of_messages_is_deprecated() -> None:
    with pytest.warns(LangGraphDeprecatedSinceV10, match="MessageGraph is deprecated") as caught:
        graph = ours.MessageGraph()
    assert caught[0].filename == __file__
    assert type(graph) is ours.MessageGraph
    with pytest.raises(AttributeError, match="odd"):
        ours.odd  # type: ignore[attr-defined]  # noqa: B018


@pytest.fixture
def task() -> Iterator[SimpleNamespace]:
    task = SimpleNamespace(sent=[], shown=[])
    task.send, task.show_message = task.sent.extend, task.shown.append
    token = current_task.set(task)
    yield task
    current_task.reset(token)


def test_pushing_shows_and_writes(task: SimpleNamespace) -> None:
    message = push_message({"role": "ai", "content": "a", "id": "1"})
    assert message == AIMessage("a", id="1")
    assert task.shown == [message] and task.sent == [("messages", message)]


def test_pushing_without_a_key_only_shows(task: SimpleNamespace) -> None:
    chunk = AIMessageChunk("a", id="1")
    assert push_message(chunk, state_key=None) is chunk
    assert task.shown == [chunk] and task.sent == []


def test_pushing_where_nobody_looks(task: SimpleNamespace) -> None:
    del task.show_message
    push_message(HumanMessage("a", id="1"), state_key="log")
    assert task.sent == [("log", HumanMessage("a", id="1"))]


def test_pushing_needs_an_id_and_a_node(task: SimpleNamespace) -> None:
    with pytest.raises(ValueError, match="Message ID is required"):
        push_message(HumanMessage("a"))
    token = current_task.set(None)
    with pytest.raises(RuntimeError, match="outside of a runnable context"):
        push_message(HumanMessage("a", id="1"))
    current_task.reset(token)


@pytest.mark.usefixtures("no_langchain")
def test_pushing_a_dict(task: SimpleNamespace) -> None:
    assert push_message(said("1")) == said("1")  # type: ignore[comparison-overlap]
    assert task.sent == [("messages", said("1"))]
