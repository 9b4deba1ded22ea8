"""The results of a conversion."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
Source = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, order=True)
class Note:
    """A remark on a field, such as `spec.backoffLimit`."""

    field: str
    text: str

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"


class Notes(list[Note]):
    """Collects notes while an object is converted."""

    def add(self, name: str, text: str) -> None:
        """Add a note on a field."""
        self.append(Note(field=name, text=text))

    def unknown(self, source: Source, known: frozenset[str], at: str) -> None:
        """Add a note on every unknown field of `source`, at the path `at`."""
        for name in source.keys() - known:
            self.add(f"{at}.{name}", "has no counterpart; left out")


@dataclass(frozen=True, kw_only=True)
class Converted:
    """An object and the notes on it, sorted by field. subject: the source's kind and name, for messages."""

    subject: str
    manifest: Source
    notes: tuple[Note, ...]
