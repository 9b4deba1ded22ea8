"""Writes the table of docs/rights.md from `mpijob_elastic/cli/rights.py`: `python -m scripts.user_rights_table`."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from mpijob_elastic.cli import rights
from mpijob_elastic.cli.rights import CommandRights, UserRight

PAGE = Path(__file__).parents[1] / "docs" / "rights.md"
BEGIN, END = (
    "<!-- rights of users, written by `make docs` -->\n\n",
    "\n<!-- end of rights of users -->",
)
HEAD = (
    "| command | role | needs | uses, too | without these |",
    "|---|---|---|---|---|",
)
# The order in which verbs stand.
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")


def page() -> str:
    """Return the page with the table between its marks.

    Raise ValueError if the marks are not there.
    """
    before, rest = PAGE.read_text().split(BEGIN)
    _, after = rest.split(END)
    return before + BEGIN + table() + END + after


def table() -> str:
    """Return a row for each command; commands with the same rights share a row."""
    alike = defaultdict[CommandRights, list[str]](list)
    for name, used in rights.COMMANDS.items():
        alike[used].append(f"`{name}`")
    rows = [_row(", ".join(named), used) for used, named in alike.items()]
    return "".join(f"{line}\n" for line in (*HEAD, *rows))


def _row(named: str, used: CommandRights) -> str:
    role = rights.role_of(used.needed).removeprefix("mpijob-elastic-")
    more = _words(used.useful - used.needed) or "-"
    return f"| {named} | {role} | {_words(used.needed)} | {more} | {used.without or '-'} |"


def _words(wanted: Iterable[UserRight]) -> str:
    """Return the resources with their verbs, those with the same verbs together."""
    verbs = defaultdict[str, set[str]](set)
    for right in wanted:
        verbs[right.of].add(right.verb)
    resources = defaultdict[str, list[str]](list)
    for resource, some in sorted(verbs.items()):
        resources[", ".join(sorted(some, key=VERBS.index))].append(f"`{resource}`")
    return "; ".join(f"{', '.join(named)}: {some}" for some, named in resources.items())


if __name__ == "__main__":
    PAGE.write_text(page())
