"""How near vectors are to each other: higher is nearer."""

from __future__ import annotations

import operator
import sys
from array import array
from collections.abc import Callable, Sequence
from importlib import import_module
from math import sqrt
from typing import Any, cast, overload

Vector = Sequence[float]


class Packed(Sequence[Vector]):
    """Vectors of `dims` numbers each, as `packed` makes them, one behind the other."""

    def __init__(self, numbers: bytes, dims: int) -> None:
        self.numbers = array("f", numbers)
        if sys.byteorder == "big":
            self.numbers.byteswap()
        self.dims = dims

    def __len__(self) -> int:
        return len(self.numbers) // self.dims if self.dims else 0

    @overload
    def __getitem__(self, index: int) -> Vector: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Vector]: ...

    def __getitem__(self, index: int | slice) -> Vector | Sequence[Vector]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self.numbers[index * self.dims : (index + 1) * self.dims]


def packed(vector: Vector) -> bytes:
    """A vector as 32-bit floats, little-endian: as sqlite-vec keeps them."""
    numbers = array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def best(query: Vector, items: Sequence[Sequence[Vector]], distance: str = "cosine") -> list[float | None]:
    """How near each item is to the query: the best of its vectors, None without any."""
    scores = iter(nearness(query, [vector for vectors in items for vector in vectors], distance))
    return [max((next(scores) for _ in vectors), default=None) for vectors in items]


def nearness(query: Vector, vectors: Sequence[Vector], distance: str = "cosine") -> list[float]:
    """The cosine of the angle between the query and each vector (0 where one has no direction), or the
    negative distance ("l2"), or the product ("inner_product")."""
    if not vectors:
        return []
    try:
        numpy = import_module("numpy")  # many times faster, and nothing that has to be installed
    except ImportError:
        return [_PLAIN[distance](query, vector) for vector in vectors]
    target = numpy.array(query, dtype=float)
    if isinstance(vectors, Packed):
        matrix = numpy.frombuffer(vectors.numbers, dtype=numpy.float32).reshape(len(vectors), vectors.dims)
        target = target.astype(numpy.float32)
    else:
        matrix = numpy.array(vectors, dtype=float)
    return cast("list[float]", _in_numpy(numpy, target, matrix, distance).tolist())


def _in_numpy(numpy: Any, query: Any, vectors: Any, distance: str) -> Any:
    if distance == "l2":
        return -numpy.linalg.norm(vectors - query, axis=1)
    products = vectors @ query
    if distance == "inner_product":
        return products
    lengths = numpy.linalg.norm(vectors, axis=1) * numpy.linalg.norm(query)
    return numpy.divide(products, lengths, out=numpy.zeros_like(products), where=lengths > 0)


def _product(query: Vector, vector: Vector) -> float:
    return float(sum(map(operator.mul, query, vector)))


def _cosine(query: Vector, vector: Vector) -> float:
    length = sqrt(_product(query, query)) * sqrt(_product(vector, vector))
    return _product(query, vector) / length if length else 0.0


def _closeness(query: Vector, vector: Vector) -> float:
    return -sqrt(sum((a - b) * (a - b) for a, b in zip(query, vector, strict=True)))


_PLAIN: dict[str, Callable[[Vector, Vector], float]] = {
    "cosine": _cosine,
    "inner_product": _product,
    "l2": _closeness,
}

DISTANCES = tuple(_PLAIN)
