"""A dictionary that is written to a file when it is closed."""

from __future__ import annotations

import os
from collections import defaultdict
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surestep.checkpoint.serde.jsonplus import JsonPlusSerializer

_lock = Lock()


class PersistentDict(defaultdict[Any, Any]):
    """A defaultdict that is read from `filename` when it is made and written there by `sync` and `close`.

    Several dictionaries can share a file, each under its own `section`. The file holds msgpack (basic
    types, dates and the like; no pickle) and is replaced as a whole, so a crash leaves the old or the new
    one.
    """

    def __init__(self, *args: Any, filename: str, **kwds: Any) -> None:
        super().__init__(*args, **kwds)
        self.filename = filename
        self.section = ""

    def load(self) -> None:
        """Add what the file has for this section. No file, or an empty one, adds nothing."""
        self.update(self._read().get(self.section, {}))

    def _read(self) -> dict[str, Any]:
        try:
            with open(self.filename, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return {}
        found: dict[str, Any] = _serde().loads_typed(("msgpack", data)) if data else {}
        return found

    def dump(self, fileobj: Any) -> None:
        """Write this section, and what the file has of others, to a binary file object."""
        sections = {**self._read(), self.section: _plain(self)}
        fileobj.write(_serde().dumps_typed(sections)[1])

    def sync(self) -> None:
        """Write the file now."""
        with _lock:
            temporary = f"{self.filename}.{os.getpid()}.tmp"
            with open(temporary, "wb") as file:
                self.dump(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.filename)

    def close(self) -> None:
        """Write the file; the dictionary stays usable."""
        self.sync()

    def __enter__(self) -> PersistentDict:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _serde() -> JsonPlusSerializer:
    from surestep.checkpoint.serde.jsonplus import JsonPlusSerializer

    return JsonPlusSerializer(allowed_msgpack_modules=None)


def _plain(value: Any) -> Any:
    """Nested default dictionaries as plain ones: their factories are functions."""
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, dict) else value
