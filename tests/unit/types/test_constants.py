"""Constants, version and deprecations."""

from __future__ import annotations

import importlib.metadata

import langgraph.constants as theirs
import langgraph.warnings as their_warnings
import pytest
from langgraph._internal import _constants as their_private  # the strings that are stored

import surestep
from surestep import _constants, constants, types, warnings
from surestep.warnings import LangGraphDeprecatedSinceV10, LangGraphDeprecationWarning


def test_public_constants() -> None:
    for name in theirs.__all__:
        assert getattr(constants, name) == getattr(theirs, name)


def test_stored_strings() -> None:
    for name in vars(_constants):
        if name.isupper() and hasattr(their_private, name):
            assert getattr(_constants, name) == getattr(their_private, name), name


def test_old_imports_say_where_to_go() -> None:
    with pytest.warns(LangGraphDeprecatedSinceV10, match="from surestep.types import Send"):
        assert constants.Send is types.Send
    with pytest.warns(LangGraphDeprecatedSinceV10, match="now private"):
        assert constants.PREVIOUS == "__previous__"
    with pytest.raises(AttributeError, match="ODD"):
        constants.ODD  # noqa: B018


def test_the_version_is_the_installed_one() -> None:
    assert surestep.__version__ == importlib.metadata.version("surestep")
    with pytest.raises(AttributeError, match="odd"):
        surestep.odd  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("name", [n for n in their_warnings.__all__ if n != "LangGraphDeprecationWarning"])
def test_a_deprecation_says_since_when(name: str) -> None:
    mine, reference = getattr(warnings, name)("Old."), getattr(their_warnings, name)("Old.")
    assert str(mine) == str(reference) and vars(mine) == vars(reference)


def test_a_deprecation_ends_with_the_next_major_version() -> None:
    assert LangGraphDeprecationWarning("m", since=(1, 4)).expected_removal == (2, 0)
    assert issubclass(LangGraphDeprecationWarning, DeprecationWarning)
