"""The methods that empty a graph's cache of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from surestep._core.cache import namespace

if TYPE_CHECKING:
    from surestep._core.blueprint import Blueprint
    from surestep.cache.base import Namespace


class CacheMethods:
    """What a graph offers about the results that it caches."""

    cache: Any

    if TYPE_CHECKING:

        @property
        def blueprint(self) -> Blueprint: ...

    def clear_cache(self, nodes: Sequence[str] | None = None) -> None:
        """Forget the cached results of these nodes; None: of all nodes that have any.

        Results of `@task`s are cleared by `that_task.clear_cache(cache)`. Raises ValueError without a cache and for
        names that are not nodes.
        """
        self._cache_there().clear(self._namespaces(nodes))

    async def aclear_cache(self, nodes: Sequence[str] | None = None) -> None:
        """As `clear_cache`."""
        await self._cache_there().aclear(self._namespaces(nodes))

    def _cache_there(self) -> Any:
        if self.cache is None:
            raise ValueError(
                "No cache is set for this graph. Cannot clear cache. Compile it with one, e.g. "
                "compile(cache=InMemoryCache()); a graph inside another uses that one's, so clear it there."
            )
        return self.cache

    def _namespaces(self, names: Sequence[str] | None) -> list[Namespace]:
        known = self.blueprint.nodes
        if unknown := [name for name in names or () if name not in known]:
            raise ValueError(f"No such nodes: {', '.join(unknown)}. The nodes are: {', '.join(known)}.")
        asked = known.values() if names is None else [known[name] for name in names]
        return [namespace(node) for node in asked if node.cache_policy is not None]

    def _with_classes(self, keeper: Any) -> Any:
        """A saver or a cache, told which classes of this graph it may revive."""
        return keeper
