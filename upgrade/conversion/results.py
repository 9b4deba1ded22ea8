"""The results of a conversion."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Object = dict[str, Any]
Source = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Note:
    """A remark on a field, such as `spec.backoffLimit`."""

    field: str
    text: str

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"


@dataclass(frozen=True, kw_only=True)
class Converted:
    """An object and the notes on it. changed: False if it equals the source."""

    subject: str
    manifest: Source
    notes: tuple[Note, ...] = ()
    changed: bool = True


@dataclass(frozen=True, kw_only=True)
class Notes:
    """Collects notes while an object is converted."""

    gathered: list[Note] = field(default_factory=list)

    def add(self, name: str, text: str) -> None:
        """Add a note on a field."""
        self.gathered.append(Note(field=name, text=text))

    def unknown(self, source: Source, known: frozenset[str], at: str) -> None:
        """Add a note on every unknown field of `source`, at the path `at`."""
        for name in source.keys() - known:
            self.add(f"{at}.{name}", "has no counterpart; left out")

    def sorted(self) -> tuple[Note, ...]:
        """Return all notes, sorted by field."""
        return tuple(sorted(self.gathered, key=lambda note: note.field))
