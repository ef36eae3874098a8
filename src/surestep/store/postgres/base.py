"""What the sync and the async store on PostgreSQL share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, TypedDict

from surestep._sql.postgres.connect import PoolConfig
from surestep._sql.postgres.run import AsyncPostgresRunner, PostgresRunner
from surestep._sql.store.dialect import POSTGRES
from surestep._sql.store.face import SqlStore
from surestep._sql.store.schema import POSTGRES_STATEMENTS, postgres
from surestep._sql.store.vectors import Pgvector
from surestep.store.base import IndexConfig, TTLConfig
from surestep.store.base._plan import Index

__all__ = (
    "ANNIndexConfig",
    "BasePostgresStore",
    "HNSWConfig",
    "IVFFlatConfig",
    "PoolConfig",
    "PostgresIndexConfig",
)


class ANNIndexConfig(TypedDict, total=False):
    """How vectors are stored and indexed: `vector_type` is "vector" (default) or "halfvec"; `kind` "flat"
    (default: no index), "hnsw" or "ivfflat"."""

    kind: Literal["hnsw", "ivfflat", "flat"]
    vector_type: Literal["vector", "halfvec"]


class HNSWConfig(ANNIndexConfig, total=False):
    """An HNSW index of pgvector."""

    m: int
    ef_construction: int


class IVFFlatConfig(ANNIndexConfig, total=False):
    """An IVFFlat index of pgvector with `nlist` lists."""

    nlist: int


class PostgresIndexConfig(IndexConfig, total=False):
    """As IndexConfig. `distance_type` says how vectors are compared ("cosine" by default); `ann_index_config`
    how they are stored."""

    ann_index_config: ANNIndexConfig
    distance_type: Literal["l2", "inner_product", "cosine"]


class BasePostgresStore(SqlStore):
    """A store on PostgreSQL, made of its connection and its config."""

    conn: Any

    MIGRATIONS: Sequence[str] = POSTGRES_STATEMENTS
    """The statements that make the tables of a new database."""

    _runs: ClassVar[type[PostgresRunner] | type[AsyncPostgresRunner]]

    def _on(
        self,
        conn: Any,
        deserializer: Callable[[bytes | str], dict[str, Any]] | None,
        index: PostgresIndexConfig | None,
        ttl: TTLConfig | None,
    ) -> None:
        self.conn = conn
        parts = None if index is None else (index, Index(index), Pgvector(POSTGRES, index))
        schema = postgres(parts[2].statements() if parts is not None else None)
        self._set_up(self._runs(conn, schema), POSTGRES, deserializer, parts, ttl)
