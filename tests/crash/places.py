"""Where the threads of trials lie."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

Place = Callable[[Path], str]
"""The database of a trial, in a folder of its own."""
