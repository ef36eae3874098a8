"""Putting configs together, for packages that do."""

from __future__ import annotations

from surestep._config import ensure_config, merge_configs, patch_configurable

__all__ = ("ensure_config", "merge_configs", "patch_configurable")
