"""The server that stands for the outside world: counts, delays, lost answers."""

from __future__ import annotations

import threading

import pytest

from surestep.testing import AnswerLost, Call, EffectServer, call_effect, effect_happened


def test_it_counts() -> None:
    with EffectServer() as server:
        first = call_effect(server.url, "refund/7 é", {"amount": 5})
        call_effect(server.url, "refund/7 é", {"amount": 5})
        call_effect(server.url, "mail")
        assert first == {"receipt": 1, "key": "refund/7 é"}
        assert server.happened("refund/7 é") == 2 and server.happened() == 3
        assert server.calls[0] == Call("refund/7 é", {"amount": 5}, happened=True)
        assert effect_happened(server.url, "mail") == {"receipt": 2, "key": "mail"}
        assert effect_happened(server.url, "other") is None


def test_a_server_that_honours_keys() -> None:
    with EffectServer(honours_keys=True) as server:
        assert call_effect(server.url, "a") == call_effect(server.url, "a")
        assert server.happened("a") == 1 and len(server.calls) == 2


def test_a_lost_answer_happened() -> None:
    with EffectServer() as server:
        server.lose_answers(1)
        with pytest.raises(AnswerLost, match="key 'a'"):
            call_effect(server.url, "a")
        assert server.happened("a") == 1 and effect_happened(server.url, "a") is not None
        call_effect(server.url, "a")
        assert server.happened("a") == 2


def test_a_refused_call_did_not_happen() -> None:
    with EffectServer() as server:
        server.refuse(1)
        with pytest.raises(RuntimeError, match="refused the call with key 'a': 503"):
            call_effect(server.url, "a")
        assert server.happened("a") == 0 and effect_happened(server.url, "a") is None


def test_held_calls_wait() -> None:
    with EffectServer() as server:
        server.hold()
        caller = threading.Thread(target=call_effect, args=(server.url, "a"))
        caller.start()
        server.wait_for(1)
        assert server.happened() == 0
        server.release()
        caller.join()
        assert server.happened("a") == 1
        with pytest.raises(TimeoutError, match="1 of 2 calls came in"):
            server.wait_for(2, timeout=0.01)


def test_a_server_that_is_gone() -> None:
    with EffectServer() as server:
        url = server.url
    with pytest.raises(AnswerLost):
        call_effect(url, "a")
