"""LangGraph's old paths for helpers of the config."""
