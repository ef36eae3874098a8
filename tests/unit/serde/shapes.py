"""Classes of an application, as the tests of the serializer save them. A module, so that they can be imported."""

from __future__ import annotations

import dataclasses
import enum
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from typing import Any, ClassVar, NamedTuple

import pydantic

from surestep.types import Send


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


class Base(pydantic.BaseModel):
    x: int = 0


class Derived(Base):
    y: int = 1


class Holder(pydantic.BaseModel):
    """A model whose own `model_dump` loses or changes something in each of its fields."""

    model_config = pydantic.ConfigDict(extra="allow")
    base: Base
    any: Any = None
    hidden: int = pydantic.Field(default=1, exclude=True)
    shown: Any = None
    _private: Any = pydantic.PrivateAttr(default=None)
    _lock: Any = pydantic.PrivateAttr(default_factory=threading.Lock)

    @pydantic.computed_field
    def computed(self) -> int:
        return 2

    @pydantic.field_serializer("shown")
    def as_text(self, value: Any) -> str:
        return "text"


class Counting(pydantic.BaseModel):
    """A model that is another one each time it is made."""

    n: int

    @pydantic.field_validator("n")
    def one_more(cls, value: int) -> int:
        return value + 1


class Loose(pydantic.BaseModel):
    """Defaults that its own types would change."""

    share: float = 1
    phase: Any = None
    tags: tuple[str, ...] = []  # type: ignore[assignment]
    url: pydantic.HttpUrl = "http://a.b/"  # type: ignore[assignment]


class Table(pydantic.RootModel[dict[str, float]]):
    pass


class Refusing(pydantic.BaseModel):
    """A model that can't be made."""

    n: int

    def __init__(self, **fields: Any) -> None:
        raise RuntimeError("not this way")


@dataclass
class Grows:
    """A dataclass that changes what it is given."""

    n: int
    kind: ClassVar[str] = "grows"

    def __post_init__(self) -> None:
        self.n += 1


class Token(str):
    """A text with a class of its own."""


class Settings(dict[str, Any]):
    """A dict with a class of its own."""


class Lines(list[Any]):
    """A list with a class of its own."""


class Pair(tuple[Any, ...]):
    """A tuple with a class of its own."""


class Count(int):
    """A whole number with a class of its own."""


class Share(float):
    """A number with a class of its own."""


class Failed(Exception):
    """A failure of the application."""


class Coded(Exception):
    """One that can't be made of its arguments."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Flags(enum.Flag):
    A = 1
    B = 2


class Word(enum.StrEnum):
    A = "a"


ALL = [
    *(Order, Money, Account, Sealed, NeedsHelp, Phase, Level, Point, Address, Customer, Aliased, Names, Outer.Inner),
    *(Base, Holder, Counting, Loose, Table, Refusing, Grows, Flags, Word),
]
EXTENDED = [Token, Settings, Lines, Pair, Count, Share, Failed, Coded]
NAMES = [(cls.__module__, cls.__qualname__) for cls in ALL]


def same(left: Any, right: Any) -> bool:
    """Equal, and of the same type all the way down."""
    if type(left) is not type(right):
        return False
    if isinstance(left, Mapping):
        return same(list(left), list(right)) and same(list(left.values()), list(right.values()))
    if isinstance(left, deque):
        return left.maxlen == right.maxlen and same(list(left), list(right))
    if isinstance(left, Send):
        return left.node == right.node and same(left.arg, right.arg)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, set | frozenset):
        return left == right and {type(item) for item in left} == {type(item) for item in right}
    if isinstance(left, BaseException):
        return same(left.args, right.args) and same(vars(left), vars(right))
    if isinstance(left, pydantic.BaseModel):
        mine, yours = ({**each.__dict__, **(each.__pydantic_extra__ or {})} for each in (left, right))
        return same(mine, yours)
    if dataclasses.is_dataclass(left) and not isinstance(left, type):
        return all(same(getattr(left, f.name), getattr(right, f.name)) for f in dataclasses.fields(left))
    return bool(left == right) or (left != left and right != right)
