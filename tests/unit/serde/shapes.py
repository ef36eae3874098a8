"""Classes of an application, as the tests of the serializer save them. A module, so that they can be imported."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from typing import Any, NamedTuple

import pydantic


@dataclass
class Order:
    id: int
    lines: list[str] = field(default_factory=list)


@dataclass
class RushOrder(Order):
    by: str = "noon"


@dataclass(frozen=True, slots=True)
class Money:
    amount: int
    currency: str = "EUR"


@dataclass
class Account:
    opening: int
    total: int = field(init=False, default=0)


@dataclass(frozen=True)
class Sealed:
    name: str
    digest: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", len(self.name))


@dataclass
class NeedsHelp:
    seed: InitVar[int]
    value: int = 0

    def __post_init__(self, seed: int) -> None:
        self.value = seed


class Phase(enum.Enum):
    OPEN = "open"
    CLOSED = ("closed", 2)


class Level(enum.IntEnum):
    LOW = 1


class Point(NamedTuple):
    x: int
    y: int = 0


class Address(pydantic.BaseModel):
    city: str


class Customer(pydantic.BaseModel):
    name: str
    address: Address
    extra: Any = None


class Aliased(pydantic.BaseModel):
    first: str = pydantic.Field(alias="firstName")


class Names(pydantic.RootModel[list[str]]):
    pass


class Outer:
    @dataclass
    class Inner:
        n: int = 0


class Token(str):
    """A text with a class of its own."""


class Settings(dict[str, Any]):
    """A dict with a class of its own."""


ALL = [Order, Money, Account, Sealed, NeedsHelp, Phase, Level, Point, Address, Customer, Aliased, Names, Outer.Inner]
NAMES = [(cls.__module__, cls.__qualname__) for cls in ALL]


def same(left: Any, right: Any) -> bool:
    """Equal, and of the same type all the way down."""
    if type(left) is not type(right):
        return False
    if isinstance(left, Mapping):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right) or (left != left and right != right)
