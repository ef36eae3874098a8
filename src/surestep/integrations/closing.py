"""Tool calls that nobody will answer any more: what is written when new input leaves a tool node's task behind.

A model's message with calls and no answers to them is refused by the providers, so a conversation in which a tool was
broken off (its run cancelled, its process killed, its question ignored) could not go on. Each open call gets an answer
that says what is known. LangChain is imported when there is one to write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from surestep._core.blueprint import BRANCH, JOIN

Write = tuple[str, Any]
Close = Callable[..., Sequence[Write]]

BROKEN_OFF: Final = (
    "This call of {name} was broken off: the conversation went on before there was a result. "
    "It may or may not have taken effect."
)


def closing_of(target: Any) -> Close | None:
    """What closes the calls of a tool node (anything with a mapping `tools_by_name`); None for other nodes."""
    if not isinstance(getattr(target, "tools_by_name", None), Mapping):
        return None
    return partial(_close, getattr(target, "_messages_key", "messages"))


def _close(
    key: str, given: Any, done: Sequence[Write], read: Callable[[str], Any], why: str | None = None
) -> Sequence[Write]:
    """What to write for a task that is left behind.

    given: the task's input; done: what it has written, if it had finished; read: the value of a channel. why: what the
    open calls are told, if that is known.
    """
    if done:  # its answers are true; where the graph would have gone from there is out of date
        return [(channel, value) for channel, value in done if not channel.startswith((BRANCH, JOIN, "__"))]
    messages = read(key)
    answered = {getattr(message, "tool_call_id", None) for message in messages or ()}
    open_calls = [call for call in _calls(given, key) if call.get("id") not in answered]
    if not open_calls:
        return ()
    from langchain_core.messages import ToolMessage

    answers = [
        ToolMessage(
            why or BROKEN_OFF.format(name=call["name"]), tool_call_id=call["id"], name=call["name"], status="error"
        )
        for call in open_calls
    ]
    return [(key, answers)]


def _calls(given: Any, key: str) -> Iterator[Mapping[str, Any]]:
    """The calls that a tool node's input asks for: one with its context, a list of them, or those in the state."""
    if isinstance(given, Mapping) and "tool_call" in given:
        yield given["tool_call"]
        return
    if isinstance(given, list) and given and isinstance(given[-1], Mapping) and given[-1].get("type") == "tool_call":
        yield from given
        return
    messages = given if isinstance(given, list) else given[key] if isinstance(given, Mapping) else getattr(given, key)
    for message in reversed(messages):
        if getattr(message, "type", None) == "ai":
            yield from getattr(message, "tool_calls", ())
            return
