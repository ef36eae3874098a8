"""For your tests: what it takes to prove that nothing happens twice, late or unasked."""

from surestep.testing.server import AnswerLost, Call, EffectServer, call_effect, effect_happened

__all__ = ("AnswerLost", "Call", "EffectServer", "call_effect", "effect_happened")
