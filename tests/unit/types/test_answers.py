"""What an interrupt asks for, and holding an answer to it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from surestep import _answers
from surestep._answers import json_schema_of, parse_answer
from surestep.errors import is_invalid_resume


class Model(BaseModel):
    amount: int


class Dict(TypedDict):
    amount: int


@dataclass
class Record:
    amount: int


@pytest.mark.parametrize("schema", [Model, Dict, Record])
def test_an_answer_is_parsed(schema: Any) -> None:
    assert json_schema_of(schema) == TypeAdapter(schema).json_schema()
    assert parse_answer(schema, {"amount": "3"}) == schema(amount=3)
    with pytest.raises(ValidationError) as caught:
        parse_answer(schema, {"amount": "three"})
    assert is_invalid_resume(caught.value)


@pytest.mark.parametrize("schema", [None, {"type": "integer"}])
def test_a_json_schema_is_passed_on_unchecked(schema: Any) -> None:
    assert json_schema_of(schema) is schema
    assert parse_answer(schema, "anything") == "anything"


def test_without_pydantic_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic", None)
    _answers._adapter.cache_clear()
    with pytest.raises(ImportError, match=r"Record.*pip install pydantic"):
        json_schema_of(Record)
