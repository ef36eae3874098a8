"""surestep: a durable graph runtime for agents. Start at `surestep.graph` (StateGraph) or `surestep.func`
(entrypoint)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surestep.version import __version__

__all__ = ("__version__",)


def __getattr__(name: str) -> str:
    # Reading package metadata costs more than the whole package, so it waits until somebody asks.
    if name == "__version__":
        from surestep.version import __version__

        return __version__
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
