"""What the scenarios share: a chat model that says what a function tells it to say, and the savers."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver


class Scripted(BaseChatModel):
    """Answers with what `reply` makes of the conversation. Word by word, if somebody streams."""

    reply: Callable[[list[BaseMessage]], AIMessage]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.reply(messages))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        message = self.reply(messages)
        chunks = [AIMessageChunk(word) for word in str(message.content).split(" ")]
        calls = [
            {"name": call["name"], "args": json.dumps(call["args"]), "id": call["id"], "index": number}
            for number, call in enumerate(message.tool_calls)
        ]
        if calls:
            chunks.append(AIMessageChunk("", tool_call_chunks=calls))
        for chunk in chunks:
            out = ChatGenerationChunk(message=chunk)
            if run_manager is not None:
                run_manager.on_llm_new_token(str(chunk.content), chunk=out)
            yield out


def say(text: str) -> AIMessage:
    return AIMessage(text)


def call(name: str, call_id: str, /, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": call_id}])


def in_turn(*replies: AIMessage) -> Scripted:
    """Says one reply after the other: which one, the conversation tells, so an answer may be asked for again."""

    def reply(messages: list[BaseMessage]) -> AIMessage:
        said = sum(isinstance(message, AIMessage) for message in messages)
        return replies[said].model_copy()

    return Scripted(reply=reply)


def texts(messages: Sequence[BaseMessage]) -> list[str]:
    """The messages as "kind: text", short enough to compare."""
    shown = []
    for message in messages:
        calls = [
            f"{one['name']}({', '.join(map(str, one['args'].values()))})" for one in getattr(message, "tool_calls", ())
        ]
        name = f" {message.name}" if isinstance(message, ToolMessage) or message.name else ""
        shown.append(f"{message.type}{name}: {message.text}{' '.join(calls)}")
    return shown


# Both drivers, all savers: a scenario is a coroutine function of a Driver


class Driver:
    """One way to run a graph: sync or async, with one saver."""

    def __init__(self, name: str, saver: Any, is_async: bool) -> None:
        self.name = name
        self.saver = saver
        self.is_async = is_async

    async def invoke(self, graph: Any, input: Any, config: Any = None, **kwargs: Any) -> Any:
        if self.is_async:
            return await graph.ainvoke(input, config, **kwargs)
        return graph.invoke(input, config, **kwargs)

    async def stream(self, graph: Any, input: Any, config: Any = None, **kwargs: Any) -> list[Any]:
        if self.is_async:
            return [part async for part in graph.astream(input, config, **kwargs)]
        return list(graph.stream(input, config, **kwargs))

    async def state(self, graph: Any, config: Any) -> Any:
        return await graph.aget_state(config) if self.is_async else graph.get_state(config)


def on_every_driver(*scenarios: Callable[[Driver], Any]) -> None:
    """Run the scenarios with memory and SQLite, sync and async, and say which were run."""

    async def play(folder: Path, name: str, is_async: bool) -> None:
        async with AsyncExitStack() as stack:
            if name == "memory":
                saver: Any = InMemorySaver()
            elif is_async:
                saver = await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(str(folder / "a.sqlite")))
            else:
                saver = stack.enter_context(SqliteSaver.from_conn_string(str(folder / "s.sqlite")))
            for scenario in scenarios:
                kind = "async" if is_async else "sync"
                try:
                    await scenario(Driver(f"{name} {kind}", saver, is_async))
                except BaseException as error:
                    error.add_note(f"in {scenario.__name__}, {name} saver, {kind}")
                    raise
                print(scenario.__name__, name, kind)

    with tempfile.TemporaryDirectory() as folder:
        for name in ("memory", "sqlite"):
            for is_async in (False, True):
                asyncio.run(play(Path(folder), name, is_async))
    print("not surestep's:", *sorted(_not_ours()))


def _not_ours() -> set[str]:
    """The parts of LangGraph in the process that are no modules of surestep's."""
    loaded = {name: module for name, module in sys.modules.items() if name.startswith("langgraph.")}
    return {
        ".".join(name.split(".")[:2]) for name, module in loaded.items() if not module.__name__.startswith("surestep")
    }


@contextmanager
def raises(kind: type[BaseException], text: str = "") -> Iterator[None]:
    try:
        yield
    except kind as error:
        assert text in str(error), str(error)
    else:
        raise AssertionError(f"no {kind.__name__}")
