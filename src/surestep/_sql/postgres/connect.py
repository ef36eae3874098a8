"""Connections of our own: one that is made anew when it was cut, or a pool of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, cast

if TYPE_CHECKING:
    from psycopg_pool import AsyncConnectionPool, ConnectionPool

SETTINGS: Mapping[str, Any] = {"autocommit": True, "prepare_threshold": None}
"""How our own connections are made: without prepared statements they work behind any pooler."""


class PoolConfig(TypedDict, total=False):
    """A pool of connections: how many there are at least (1) and at most (as many), for how many seconds one may be
    idle (600) and live (3600), how many seconds a call waits for one (30), and what else `psycopg.connect` is given."""

    min_size: int
    max_size: int | None
    max_idle: float
    max_lifetime: float
    timeout: float
    kwargs: dict[str, Any]


Connect = Callable[[], Any]
"""Makes a connection, or gives something to await that does."""


@contextmanager
def opened(conn_string: str, pool: PoolConfig | None, **settings: Any) -> Iterator[tuple[Any, Connect | None]]:
    """A pool of connections, closed at the end; or one connection, and how it is made again."""
    from psycopg import Connection

    if pool is not None:
        with _pooled(conn_string, pool, settings) as made:
            yield made, None
        return
    connect = partial(Connection.connect, conn_string, **{**SETTINGS, **settings})
    yield connect(), connect


@asynccontextmanager
async def aopened(
    conn_string: str, pool: PoolConfig | None, **settings: Any
) -> AsyncIterator[tuple[Any, Connect | None]]:
    """The same for an event loop."""
    from psycopg import AsyncConnection

    if pool is not None:
        async with _apooled(conn_string, pool, settings) as made:
            yield made, None
    else:
        connect = partial(AsyncConnection.connect, conn_string, **{**SETTINGS, **settings})
        yield await connect(), connect


def _pooled(conn_string: str, config: PoolConfig, settings: Mapping[str, Any]) -> ConnectionPool[Any]:
    from psycopg_pool import ConnectionPool

    return ConnectionPool(conn_string, **_pool_of(config, settings))


def _apooled(conn_string: str, config: PoolConfig, settings: Mapping[str, Any]) -> AsyncConnectionPool[Any]:
    from psycopg_pool import AsyncConnectionPool

    return AsyncConnectionPool(conn_string, **_pool_of(config, settings))


@contextmanager
def connected(conn_string: str, pool: PoolConfig | None, *, pipeline: bool) -> Iterator[Any]:
    """A connection to the database, or a pool of them; closed at the end."""
    with opened(conn_string, pool) as (conn, _), conn if pool is None else nullcontext():
        with conn.pipeline() if pipeline and pool is None else nullcontext():
            yield conn


@asynccontextmanager
async def aconnected(conn_string: str, pool: PoolConfig | None, *, pipeline: bool) -> AsyncIterator[Any]:
    """A connection of an event loop, or a pool of them; closed at the end."""
    async with aopened(conn_string, pool) as (conn, _), conn if pool is None else nullcontext():
        async with conn.pipeline() if pipeline and pool is None else nullcontext():
            yield conn


def _pool_of(config: PoolConfig, settings: Mapping[str, Any]) -> dict[str, Any]:
    rest = {**config}
    kwargs = {**SETTINGS, **settings, **cast("dict[str, Any]", rest.pop("kwargs", None) or {})}
    return {"min_size": 1, **rest, "kwargs": kwargs, "open": False}
