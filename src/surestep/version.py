"""`__version__`: the version of the installed distribution, "" when the package runs from an unpacked
tree."""

from __future__ import annotations

from importlib import metadata

__all__ = ("__version__",)

try:
    __version__ = metadata.version("surestep")
except metadata.PackageNotFoundError:
    __version__ = ""
