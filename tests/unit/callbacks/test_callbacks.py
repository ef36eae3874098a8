"""Who is told that a graph paused or went on."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.callbacks import AsyncCallbackManager, BaseCallbackHandler, CallbackManager

from surestep import callbacks
from surestep.callbacks import (
    GraphInterruptEvent,
    GraphResumeEvent,
    get_async_graph_callback_manager_for_config,
    get_sync_graph_callback_manager_for_config,
)

if TYPE_CHECKING:
    from surestep.callbacks import GraphCallbackHandler as Base
else:
    Base = callbacks.GraphCallbackHandler

PAUSED = GraphInterruptEvent(None, "pending", "1ef", (), ())
RESUMED = GraphResumeEvent(None, "pending", "1ef", ())


class Handler(Base):
    def __init__(self, fails: bool = False, raise_error: bool = False) -> None:
        self.told: list[Any] = []
        self.threads: list[int] = []
        self.fails = fails
        self.raise_error = raise_error

    def on_interrupt(self, event: GraphInterruptEvent) -> Any:
        self._note(event)

    def on_resume(self, event: GraphResumeEvent) -> Any:
        self._note(event)

    def _note(self, event: Any) -> None:
        self.told.append(event)
        self.threads.append(threading.get_ident())
        if self.fails:
            raise ValueError("boom")


class AsyncHandler(Handler):
    async def on_interrupt(self, event: GraphInterruptEvent) -> Any:
        await asyncio.sleep(0)
        self._note(event)

    async def on_resume(self, event: GraphResumeEvent) -> Any:
        await asyncio.sleep(0)
        self._note(event)


class Stranger(BaseCallbackHandler):
    pass


def tell(config: Any, drive: str) -> None:
    """Both events, from sync code, from sync code under a running loop, or from async code."""

    def sync() -> None:
        manager = get_sync_graph_callback_manager_for_config(config)
        manager.on_interrupt(PAUSED)
        manager.on_resume(RESUMED)

    async def sync_in_a_loop() -> None:
        sync()

    async def in_async() -> None:
        manager = get_async_graph_callback_manager_for_config(config)
        await manager.on_interrupt(PAUSED)
        await manager.on_resume(RESUMED)

    if drive == "sync":
        sync()
    else:
        asyncio.run(in_async() if drive == "async" else sync_in_a_loop())


drives = pytest.mark.parametrize("drive", ["sync", "sync in a loop", "async"])


@drives
@pytest.mark.parametrize("kind", [Handler, AsyncHandler])
@pytest.mark.parametrize("given", ["one", "list", "manager", "async manager"])
def test_handlers_are_told(drive: str, kind: type[Handler], given: str) -> None:
    handler = kind()
    ways = {
        "one": handler,
        "list": [Stranger(), handler],
        "manager": CallbackManager([Stranger(), handler]),
        "async manager": AsyncCallbackManager([handler]),
    }
    tell({"callbacks": ways[given]}, drive)
    assert handler.told == [PAUSED, RESUMED]


@drives
@pytest.mark.parametrize("config", [{}, {"callbacks": None}, {"callbacks": []}, {"callbacks": [Stranger()]}])
def test_nobody_to_tell(drive: str, config: Any) -> None:
    tell(config, drive)


@drives
def test_a_handler_that_fails_is_logged(drive: str, caplog: pytest.LogCaptureFixture) -> None:
    broken, fine = Handler(fails=True), Handler()
    tell({"callbacks": [broken, fine]}, drive)
    assert fine.told == [PAUSED, RESUMED]
    assert "Error in Handler.on_interrupt callback: ValueError('boom')" in caplog.text


@drives
@pytest.mark.parametrize("kind", [Handler, AsyncHandler])
def test_a_handler_may_end_the_run(drive: str, kind: type[Handler]) -> None:
    with pytest.raises(ValueError, match="boom"):
        tell({"callbacks": [kind(fails=True, raise_error=True)]}, drive)


def test_a_sync_handler_does_not_hold_up_the_loop() -> None:
    elsewhere, inline = Handler(), Handler()
    inline.run_inline = True
    tell({"callbacks": [elsewhere, inline]}, "async")
    assert threading.get_ident() not in elsewhere.threads
    assert set(inline.threads) == {threading.get_ident()}


def test_a_manager_takes_any_handler() -> None:
    manager = get_sync_graph_callback_manager_for_config({})
    handler, stranger = Handler(), Stranger()
    manager.add_handler(stranger, inherit=True)
    manager.add_handler(handler)
    manager.on_interrupt(PAUSED)
    assert manager.handlers == [stranger, handler] and handler.told == [PAUSED]


def test_a_handler_is_one_of_langchains() -> None:
    assert issubclass(Base, BaseCallbackHandler)
    assert Base().on_interrupt(PAUSED) is None and Base().on_resume(RESUMED) is None


def test_without_langchain_there_are_handlers_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_core.callbacks.base", None)
    monkeypatch.delitem(sys.modules, "surestep.integrations.callbacks", raising=False)
    callbacks._handler_class.cache_clear()
    try:
        base = callbacks.GraphCallbackHandler
        assert not issubclass(base, BaseCallbackHandler)
        tell({"callbacks": [base()]}, "sync")
    finally:
        callbacks._handler_class.cache_clear()
    with pytest.raises(AttributeError, match="odd"):
        callbacks.odd  # type: ignore[attr-defined]  # noqa: B018
