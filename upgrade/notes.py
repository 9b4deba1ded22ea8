"""The notes on a conversion: what became of a field, and what is left to do."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

_LEFT_OUT = "has no counterpart; left out"


class ConversionNote(NamedTuple):
    """A remark on a field, such as `spec.backoffLimit`."""

    field: str
    text: str
    #: The result does not do what the source did, or nobody can tell. The text says what to do.
    to_do: bool = False

    def __str__(self) -> str:
        return f"{'to do: ' if self.to_do else ''}{self.field}: {self.text}"


class Notes(list[ConversionNote]):
    """Collects notes while an object is converted."""

    def add(self, name: str, text: str) -> None:
        """Add a note on a field that needs nothing."""
        self.append(ConversionNote(name, text))

    def to_do(self, name: str, text: str) -> None:
        """Add a note on a field that somebody must look at."""
        self.append(ConversionNote(name, text, to_do=True))

    def left_out(self, name: str) -> None:
        """Add a note on a field that nothing replaces."""
        self.add(name, _LEFT_OUT)

    def unknown(self, source: Mapping[str, Any], known: Collection[str], at: str) -> None:
        """Add a note on every unknown field of `source`, at the path `at`."""
        for name in source.keys() - known:
            self.left_out(f"{at}.{name}")
