"""Graphs written as functions: `@entrypoint` makes a function a graph, `@task` makes one a step of it."""

from surestep.func._entrypoint import entrypoint
from surestep.func._task import task

__all__ = ("entrypoint", "task")
