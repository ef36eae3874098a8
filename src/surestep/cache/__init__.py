"""Caches of what nodes and tasks returned."""
