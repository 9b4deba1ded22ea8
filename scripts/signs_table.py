"""Writes the table of signs in docs/spot.md from the code: `python -m scripts.signs_table`."""

from itertools import groupby
from pathlib import Path

from mpijob_elastic.capabilities.disruption.known_signs import KNOWN, KnownSign
from mpijob_elastic.capabilities.disruption.signs import Carrier
from mpijob_elastic.model import phrases

PAGE = Path(__file__).parents[1] / "docs" / "spot.md"
BEGIN, END = "<!-- signs, written by `make docs` -->\n\n", "\n<!-- end of signs -->"
HEAD = ("| sign | set by | counts | if widespread |", "|---|---|---|---|")


def page() -> str:
    """Return the page with the table between its marks.

    Raise ValueError if the marks are not there.
    """
    before, rest = PAGE.read_text().split(BEGIN)
    _, after = rest.split(END)
    return before + BEGIN + table() + END + after


def table() -> str:
    """Return a row for the signs beside each other that differ only in their names."""
    rows = [_row(list(known)) for _, known in groupby(KNOWN, key=_beside)]
    return "".join(f"{line}\n" for line in (*HEAD, *rows))


def _beside(known: KnownSign) -> tuple[str, ...]:
    return (_setter(known), _counts(known), _waits(known), known.sign.kind)


def _row(known: list[KnownSign]) -> str:
    first = known[0]
    plural = "s" if len(known) > 1 else ""
    names = ", ".join(_name(one) for one in known)
    cells = (f"{first.sign.kind}{plural} {names}", *_beside(first)[:3])
    return f"| {' | '.join(cells)} |"


def _name(known: KnownSign) -> str:
    sign = known.sign
    if sign.kind is Carrier.TAINT:
        return f"`{known.text}`"
    if sign.kind is Carrier.CONDITION:
        return f"`{sign.key}` {sign.values[0]}"
    return f"`{sign.key}`: {', '.join(f'`{value}`' for value in sign.values)}"


def _setter(known: KnownSign) -> str:
    address, _, version = known.source.partition(" ")
    return f"[{known.set_by}]({address.removesuffix(':')})" + (
        f" {version}" if version.startswith("v") else ""
    )


def _counts(known: KnownSign) -> str:
    sign = known.sign
    if sign.lasts:
        return f"after {phrases.duration(sign.lasts)}"
    if sign.while_cordoned:
        return "while the node is cordoned"
    if sign.advice:
        return f"unless its message has `{sign.advice}`"
    return "at once"


def _waits(known: KnownSign) -> str:
    return "one at a time" if known.can_wait else "all at once"


if __name__ == "__main__":
    PAGE.write_text(page())
