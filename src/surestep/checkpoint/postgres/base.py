"""What the sync and the async saver on PostgreSQL share, and the SQL that sets a database up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from surestep._sql.dialect import POSTGRES
from surestep._sql.postgres import schema as schemas
from surestep._sql.postgres.connect import Connect, PoolConfig
from surestep._sql.postgres.run import AsyncPostgresRunner, PostgresRunner
from surestep._sql.postgres.words import Words
from surestep._sql.saver import SqlSaver
from surestep.checkpoint.base import SerializerProtocol

__all__ = ("BasePostgresSaver", "PoolConfig", "grant_sql", "setup_sql")


def setup_sql(schema: str | None = None, *, since: int = 0) -> str:
    """What `setup()` does, as SQL for somebody with more rights to read and run.

    schema: where the tables go; by default the first schema of the search path. since: the greatest number in
    `surestep_migrations`, for a database that an earlier release has set up.
    """
    return schemas.script(schema, since)


def grant_sql(role: str, *, schema: str | None = None, tenant: str | None = None) -> str:
    """The rights that a role needs to run a saver, as SQL. With `tenant` the role sees the rows of that tenant only,
    whatever it asks for."""
    return schemas.grants(role, schema, tenant)


class BasePostgresSaver(SqlSaver):
    """A saver on PostgreSQL, made of its connection."""

    _runner: PostgresRunner | AsyncPostgresRunner
    conn: Any
    pipe: Any = None

    MIGRATIONS: ClassVar[Sequence[str]] = tuple(schemas.migration(1))
    """The statements that make the tables of a new database."""

    _runs: ClassVar[type[PostgresRunner] | type[AsyncPostgresRunner]]

    def __init__(self, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(None, POSTGRES, serde)  # type: ignore[arg-type]  # `_on` gives it a runner

    @classmethod
    def _made(cls, conn: Any, connect: Connect | None, *args: Any, **kwargs: Any) -> Self:
        saver = cls(conn, None, *args, **kwargs)  # type: ignore[call-arg]
        saver._runner.reconnects_by(connect)
        return saver

    def _on(self, conn: Any, pipe: Any, schema: str | None, tenant: str | None) -> None:
        if pipe is not None and not hasattr(conn, "transaction"):
            raise ValueError("A pipeline belongs to one connection: give the connection, not a pool.")
        self.conn, self.pipe = conn, pipe
        words = Words(schema, tenant, binary=True)
        self._runner = self._runs(conn, schemas.of_savers(schema), words)
