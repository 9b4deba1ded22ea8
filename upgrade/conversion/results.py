"""What a conversion gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Object = dict[str, Any]
Source = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Note:
    """What became of one field; field: as `spec.backoffLimit`."""

    field: str
    text: str

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"


@dataclass(frozen=True, kw_only=True)
class Converted:
    """An object and what is to be said of it. changed: whether it is another than the source."""

    subject: str
    manifest: Source
    notes: tuple[Note, ...] = ()
    changed: bool = True


@dataclass(frozen=True, kw_only=True)
class Notes:
    """Gathers notes while an object is converted."""

    gathered: list[Note] = field(default_factory=list)

    def add(self, name: str, text: str) -> None:
        """Note something of a field."""
        self.gathered.append(Note(field=name, text=text))

    def unknown(self, source: Source, known: frozenset[str], at: str) -> None:
        """Note every field of `source`, which stands at `at`, that is not known."""
        for name in source.keys() - known:
            self.add(f"{at}.{name}", "has no counterpart; left out")

    def sorted(self) -> tuple[Note, ...]:
        """All of them, by field."""
        return tuple(sorted(self.gathered, key=lambda note: note.field))
