"""Texts of an item and the vectors they become."""

from __future__ import annotations

import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

__all__ = ["AEmbeddingsFunc", "EmbeddingsFunc", "ensure_embeddings"]

EmbeddingsFunc: TypeAlias = Callable[[Sequence[str]], list[list[float]]]
"""A function from texts to vectors, one each."""

AEmbeddingsFunc: TypeAlias = Callable[[Sequence[str]], Awaitable[list[list[float]]]]
"""An async function from texts to vectors, one each."""


class Embeddings(ABC):
    """What makes vectors of texts. LangChain's Embeddings count as instances, as does anything with its two
    methods."""

    @abstractmethod
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of texts to be found."""

    @abstractmethod
    def embed_query(self, text: str) -> list[float]:
        """The vector of a text to search with."""

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of texts to be found; computed in a thread by default."""
        import asyncio

        return await asyncio.to_thread(self.embed_documents, texts)

    async def aembed_query(self, text: str) -> list[float]:
        """The vector of a text to search with; computed in a thread by default."""
        import asyncio

        return await asyncio.to_thread(self.embed_query, text)

    @classmethod
    def __subclasshook__(cls, other: type) -> bool:
        if cls is not Embeddings:
            return NotImplemented  # type: ignore[no-any-return]
        return all(callable(getattr(other, name, None)) for name in ("embed_documents", "embed_query"))


class EmbeddingsLambda(Embeddings):
    """A function from texts to vectors as Embeddings. With an async function only the async methods work."""

    def __init__(self, func: EmbeddingsFunc | AEmbeddingsFunc) -> None:
        self.func: Any = func
        call = getattr(func, "__call__", None)  # noqa: B004 - the method, for objects with an async one
        self.is_async = inspect.iscoroutinefunction(func) or inspect.iscoroutinefunction(call)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of the texts. Raises ValueError when the function is async."""
        if self.is_async:
            raise ValueError(
                "The embed function of this store is async, so only the async methods can use it: "
                "await store.aput(...) and store.asearch(...), or give a sync function."
            )
        vectors: list[list[float]] = self.func(texts)
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """The vector of the text. Raises ValueError when the function is async."""
        return self.embed_documents([text])[0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """The vectors of the texts; a sync function runs in a thread."""
        if not self.is_async:
            return await super().aembed_documents(texts)
        vectors: list[list[float]] = await self.func(texts)
        return vectors

    async def aembed_query(self, text: str) -> list[float]:
        """The vector of the text; a sync function runs in a thread."""
        return (await self.aembed_documents([text]))[0]


def ensure_embeddings(embed: Embeddings | EmbeddingsFunc | AEmbeddingsFunc | str | None) -> Embeddings:
    """`embed` as Embeddings: an object that is one already, a function of a list of texts, or
    "provider:model".

    Raises ValueError for None, and for text when langchain is not installed; TypeError for anything else.
    """
    if embed is None:
        raise ValueError("embed must be provided: a function from texts to vectors, or an Embeddings object")
    if isinstance(embed, str):
        return _by_name(embed)
    if isinstance(embed, Embeddings):
        return embed
    if callable(embed):
        return EmbeddingsLambda(embed)
    raise TypeError(f"embed must be a function from texts to vectors or an Embeddings object, got {embed!r}")


def _by_name(name: str) -> Embeddings:
    try:
        from importlib import import_module

        init_embeddings = import_module("langchain.embeddings").init_embeddings
    except (ImportError, AttributeError):
        raise ValueError(
            f"embed={name!r} names a model of a provider, which needs langchain and the provider's package: "
            "pip install langchain, or give a function from texts to vectors."
        ) from None
    embeddings: Embeddings = init_embeddings(name)
    return embeddings


def get_text_at_path(obj: Any, path: str | list[str]) -> list[str]:
    """The texts that `path` finds in `obj`: numbers and booleans as text, lists and dicts as JSON, nothing
    for None.

    "" and "$" are the whole of it. "a.b" goes down keys, "a[0]", "a[-1]" and "a[*]" into lists, "*" into
    everything, "{a,b.c}" several ways. The path may be given as the tokens of `tokenize_path`.
    """
    if not path or path == "$":
        return [_json(obj)]
    return _texts(obj, tokenize_path(path) if isinstance(path, str) else path)


def _texts(obj: Any, tokens: list[str]) -> list[str]:
    if not tokens:
        if obj is None:
            return []
        return [_json(obj)] if isinstance(obj, (dict, list)) else [str(obj)]
    token, rest = tokens[0], tokens[1:]
    found: list[Any]
    if token.startswith("[") and token.endswith("]"):
        found = _elements(obj, token[1:-1].strip()) if isinstance(obj, list) else []
    elif token.startswith("{") and token.endswith("}"):
        fields = _split_fields(token[1:-1]) if isinstance(obj, dict) else []
        return [text for field in fields for text in _texts(obj, [*tokenize_path(field), *rest])]
    elif token == "*":
        found = list(obj.values()) if isinstance(obj, dict) else obj if isinstance(obj, list) else []
    else:
        found = [obj[token]] if isinstance(obj, dict) and token in obj else []
    return [text for element in found for text in _texts(element, rest)]


def _elements(elements: list[Any], index: str) -> list[Any]:
    if index == "*":
        return elements
    try:
        return [elements[int(index)]]
    except (ValueError, IndexError):
        return []


def _split_fields(fields: str) -> list[str]:
    """The parts between the commas that stand in no inner braces."""
    parts, depth, start = [], 0, 0
    for position, char in enumerate(fields):
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            parts.append(fields[start:position].strip())
            start = position + 1
    parts.append(fields[start:].strip())
    return [part for part in parts if part]


def _json(obj: Any) -> str:
    return json.dumps(obj, sort_keys=True, ensure_ascii=False)


def tokenize_path(path: str) -> list[str]:
    """The steps of a path: keys, "[index]" and "{several,fields}"; dots part them and are dropped."""
    tokens = []
    position = 0
    while position < len(path):
        end = _token_end(path, position)
        if end > position:
            tokens.append(path[position:end])
        position = end + (end < len(path) and path[end] == ".")
    return tokens


def _token_end(path: str, start: int) -> int:
    """Where the token that starts at `start` ends."""
    closing = {"[": "]", "{": "}"}.get(path[start])
    if closing is None:
        end = start
        while end < len(path) and path[end] not in ".[{":
            end += 1
        return end
    depth = 0
    for position in range(start, len(path)):
        depth += (path[position] == path[start]) - (path[position] == closing)
        if depth == 0:
            return position + 1
    return len(path)
