"""Names that packages for LangGraph take from its private modules, under the same paths.

Only what published packages import is here (see docs/moving-from-langgraph.md). Nothing of surestep uses it.
"""
