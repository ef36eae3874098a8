"""Helpers of the config under LangGraph's path."""

from __future__ import annotations

from surestep._config import ensure_config, patch_configurable
from surestep.config import get_config, get_store

__all__ = ("ensure_config", "get_config", "get_store", "patch_configurable")
