"""Which errors are retried, how limits are read, which inputs count as the same."""

from __future__ import annotations

import subprocess
import sys
from collections import OrderedDict
from datetime import timedelta
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from surestep.types import RetryPolicy, TimeoutPolicy, default_cache_key, default_retry_on, omit_payload

# Retries


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (ConnectionError(), True),
        (ConnectionResetError(), True),
        (Exception("odd"), True),
        (ValueError(), False),
        (TypeError(), False),
        (ZeroDivisionError(), False),
        (ImportError(), False),
        (KeyError(), False),
        (NameError(), False),
        (SyntaxError(), False),
        (RuntimeError(), False),
        (ReferenceError(), False),
        (StopIteration(), False),
        (StopAsyncIteration(), False),
        (OSError(), False),
        (TimeoutError(), False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_what_may_go_away_is_retried(error: Exception, again: bool) -> None:
    assert default_retry_on(error) is again


class FalsyResponse(SimpleNamespace):
    """As in requests, where a response with an error status is falsy."""

    def __bool__(self) -> bool:
        return bool(self.status_code < 400)


@pytest.fixture
def http(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Stand-ins for the two libraries, with the classes that matter."""

    class HTTPStatusError(Exception):
        def __init__(self, status: int) -> None:
            self.response = FalsyResponse(status_code=status)

    class HTTPError(OSError):
        def __init__(self, status: int | None) -> None:
            self.response = None if status is None else FalsyResponse(status_code=status)

    httpx, requests = ModuleType("httpx"), ModuleType("requests")
    httpx.HTTPStatusError = HTTPStatusError  # type: ignore[attr-defined]
    requests.HTTPError = HTTPError  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "httpx", httpx)
    monkeypatch.setitem(sys.modules, "requests", requests)
    return SimpleNamespace(httpx=HTTPStatusError, requests=HTTPError)


@pytest.mark.parametrize(("status", "again"), [(404, False), (429, False), (500, True), (503, True)])
def test_http_errors_are_retried_by_status(http: SimpleNamespace, status: int, again: bool) -> None:
    # LangGraph retries every status of requests, because it asks whether the response is truthy.
    assert default_retry_on(http.httpx(status)) is again
    assert default_retry_on(http.requests(status)) is again


def test_a_request_without_a_response_is_retried(http: SimpleNamespace) -> None:
    assert default_retry_on(http.requests(None)) is True


def test_the_policy_is_a_tuple_of_settings() -> None:
    assert RetryPolicy() == (0.5, 2.0, 128.0, 3, True, default_retry_on)


# Limits


@pytest.mark.parametrize(
    ("given", "policy"),
    [
        (None, None),
        (TimeoutPolicy(), None),
        (2, TimeoutPolicy(run_timeout=2.0)),
        (timedelta(minutes=1), TimeoutPolicy(run_timeout=60.0)),
        (TimeoutPolicy(idle_timeout=timedelta(seconds=1)), TimeoutPolicy(idle_timeout=1.0)),
        (
            TimeoutPolicy(run_timeout=5, refresh_on="heartbeat"),
            TimeoutPolicy(run_timeout=5.0, refresh_on="heartbeat"),
        ),
    ],
    ids=repr,
)
def test_limits_become_seconds(given: Any, policy: TimeoutPolicy | None) -> None:
    assert TimeoutPolicy.coerce(given) == policy


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (0, "run_timeout must be greater than 0"),
        (timedelta(seconds=-1), "run_timeout must be greater than 0"),
        (TimeoutPolicy(idle_timeout=-3), "idle_timeout must be greater than 0"),
        (TimeoutPolicy(refresh_on="never"), "refresh_on must be 'auto' or 'heartbeat'"),  # type: ignore[arg-type]
    ],
    ids=repr,
)
def test_limits_that_make_no_sense(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TimeoutPolicy.coerce(given)


# Cache keys


class Array:
    """Like an array: no value of its own, only bytes, a type and a shape."""

    def __init__(self, content: bytes, dtype: str = "i4", shape: tuple[int, ...] = (1,)) -> None:
        self.content, self.dtype, self.shape = content, dtype, shape

    def tobytes(self) -> bytes:
        return self.content


def apart(text: str) -> str:
    """An equal string that is another object."""
    return "".join(list(text))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}),
        ({"a", "b", "c"}, {"c", "b", "a"}),
        (["word"] * 2, [apart("word"), apart("word")]),
        ({1: "a", "1": "b"}, {"1": "b", 1: "a"}),
        (Array(b"x"), Array(b"x")),
        (OrderedDict(a=1, b=2), OrderedDict(b=2, a=1)),
    ],
    ids=repr,
)
def test_equal_inputs_have_one_key(one: Any, other: Any) -> None:
    assert default_cache_key(one) == default_cache_key(other)
    assert default_cache_key(state=one) == default_cache_key(state=other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        ([1, 2], [2, 1]),
        ([1], (1,)),
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, [("a", 1)]),
        ("1", 1),
        (Array(b"x"), Array(b"y")),
        (Array(b"x"), Array(b"x", dtype="f4")),
        (Array(b"x"), Array(b"x", shape=(1, 1))),
    ],
    ids=repr,
)
def test_other_inputs_have_another(one: Any, other: Any) -> None:
    assert default_cache_key(one) != default_cache_key(other)


def test_where_an_argument_stands_counts() -> None:
    assert default_cache_key(1, 2) != default_cache_key(2, 1)
    assert default_cache_key(1) != default_cache_key(x=1)
    assert default_cache_key(x=1, y=2) == default_cache_key(y=2, x=1)


def test_deep_and_circular_inputs_have_a_key() -> None:
    deep: list[Any] = []
    for _ in range(50):
        deep = [deep]
    assert default_cache_key(deep) == default_cache_key(deep)
    circular: list[Any] = []
    circular.append(circular)
    assert default_cache_key(circular)


def test_a_key_is_the_same_in_another_process() -> None:
    code = "from surestep.types import default_cache_key as k; print(k({'b', 'a'}, x={'q': [1], 'p': 2}).hex())"
    keys = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(keys) == 1


def test_a_payload_can_be_left_out() -> None:
    assert omit_payload({"secret": 1}) == {}
