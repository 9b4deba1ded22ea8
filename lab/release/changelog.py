"""What CHANGELOG.md says of a version, as release notes and as the list that Artifact Hub shows."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lab.images.product.image import ROOT

CHANGELOG = ROOT / "CHANGELOG.md"
# The kinds of Artifact Hub (https://artifacthub.io/docs/topics/annotations/helm/) by our headings.
KINDS = {
    "Breaking": "changed",
    "Added": "added",
    "Changed": "changed",
    "Fixed": "fixed",
    "Removed": "removed",
    "Deprecated": "deprecated",
    "Security": "security",
}
_LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")
_RELATIVE = re.compile(r"\]\((?!https?:|#)")
_SENTENCE = re.compile(r"(?<=[.:])\s(?=[A-Z`\[])")


@dataclass(frozen=True)
class Change:
    """An entry: `heading` is that above it."""

    heading: str
    text: str


def section(version: str, changelog: str) -> str:
    """Return what stands below the heading of a version. Raise ValueError if it has none."""
    found = re.search(
        rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## |\Z)",
        changelog,
        re.MULTILINE | re.DOTALL,
    )
    if found is None:
        raise ValueError(f"CHANGELOG.md has no heading for {version}")
    return found[1].strip() + "\n"


def date(version: str, changelog: str) -> str:
    """Return the date of a version, as 2026-11-30. Raise ValueError if it has none."""
    found = re.search(
        rf"^## \[{re.escape(version)}\] - (\d{{4}}-\d\d-\d\d)$", changelog, re.MULTILINE
    )
    if found is None:
        raise ValueError(f"CHANGELOG.md has no date for {version}")
    return found[1]


def notes(version: str, changelog: str, *, pages: str) -> str:
    """Return release notes, whose links to files of the sources lead below `pages`."""
    return _RELATIVE.sub(f"]({pages}/", section(version, changelog))


def changes(text: str) -> Iterator[Change]:
    """Yield the entries of a section, each on one line."""
    heading, entry = "", list[str]()
    for line in [*text.splitlines(), "### "]:
        if entry and not line.startswith("  "):
            yield Change(heading, " ".join(part.strip() for part in entry))
            entry = []
        if line.startswith("### "):
            heading = line.removeprefix("### ")
        elif line.startswith("- "):
            entry = [line.removeprefix("- ")]
        elif entry:
            entry.append(line)


def brief(change: Change) -> str:
    """Return the first sentence of an entry, without links."""
    plain = _LINK.sub(r"\1", change.text)
    return _SENTENCE.split(plain, maxsplit=1)[0].rstrip(":")
