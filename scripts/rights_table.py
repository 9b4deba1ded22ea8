"""Writes the table of rights in docs/security.md from config/: `python -m scripts.rights_table`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.install import overlays

PAGE = Path(__file__).parents[1] / "docs" / "security.md"
BEGIN, END = "<!-- rights, written by `make docs` -->\n\n", "\n<!-- end of rights -->"
HEAD = ("| account | where | resources | verbs |", "|---|---|---|---|")


def page() -> str:
    """Return the page with the table between its marks.

    Raise ValueError if the marks are not there.
    """
    before, rest = PAGE.read_text().split(BEGIN)
    _, after = rest.split(END)
    return before + BEGIN + table() + END + after


def table() -> str:
    """Return a row for each rule that an account of the default installation has."""
    rows = [
        f"| {account} | {where} | {_resources(rule)} | {', '.join(rule['verbs'])} |"
        for account, where, rule in _rules()
    ]
    return "".join(f"{line}\n" for line in (*HEAD, *rows))


def _rules() -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    manifests = overlays.rendered(overlays.DEFAULT)
    roles = {
        _identity(one["kind"], one["metadata"]): one["rules"] for one in manifests if "rules" in one
    }
    for account in (names.CONTROLLER, names.WEBHOOK):
        for one in manifests:
            if account in [subject["name"] for subject in one.get("subjects", ())]:
                role = _identity(
                    one["roleRef"]["kind"], one["metadata"] | {"name": one["roleRef"]["name"]}
                )
                where = (
                    "the cluster"
                    if one["kind"] == "ClusterRoleBinding"
                    else f"`{one['metadata']['namespace']}`"
                )
                for rule in roles[role]:
                    yield account.removeprefix(f"{names.PROGRAM}-"), where, rule


def _identity(kind: str, metadata: Mapping[str, Any]) -> tuple[str, str, str]:
    return kind, metadata["name"], metadata["namespace"] if kind == "Role" else ""


def _resources(rule: Mapping[str, Any]) -> str:
    """Return the resources as `kubectl auth can-i` takes them, and the names to which the rule is bound."""
    resources = [
        ".".join(filter(None, (resource.partition("/")[0], group)))
        + "".join(resource.partition("/")[1:])
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    ]
    bound = f", only {_code(rule['resourceNames'])}" if "resourceNames" in rule else ""
    return _code(resources) + bound


def _code(words: list[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


if __name__ == "__main__":
    PAGE.write_text(page())
