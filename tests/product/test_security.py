"""Hold docs/writes.md, the table of every write, against the code, the rights and the admission policies."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from mpijob_elastic.decide.actions import Create, Delete, Patch
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.writer import ApiWriter
from tests.kinds import kinds

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "writes.md"
PRODUCT = ("mpijob_elastic", "webhook", "upgrade")
WRITES = {
    name for name in vars(ApiWriter) if not name.startswith("_") and not hasattr(ApiReader, name)
}
# A command in a container may change something, too.
EXECS = {"execute", "exec_in_pod", "exec_on_terminal"}
VERBS = {
    "create_object": "create",
    "patch_object": "patch",
    "apply_object": "apply",
    "delete_object": "delete",
    "execute": "exec",
    "exec_in_pod": "exec",
    "exec_on_terminal": "exec",
}
# The methods here have the names of the writes that they pass on, so their callers are found
# instead.
DOORS = {
    "mpijob_elastic/kube/writer.py",
    "mpijob_elastic/kube/exec.py",
    "mpijob_elastic/act/leader_writer.py",
}
# What the functions here send is told by kinds of actions.
SENDERS = {
    ("mpijob_elastic/act/writer.py", "_patch", "patch"),
    ("mpijob_elastic/act/writer.py", "_create", "create"),
}
ACTIONS = {
    (str(Path(inspect.getfile(kind)).relative_to(ROOT)), kind.__name__, verb): kind
    for verb, base in (("patch", Patch), ("create", Create), ("delete", Delete))
    for kind in kinds(base)
}

Site = tuple[str, str, str]


def sources() -> Iterator[tuple[str, ast.Module]]:
    for folder in PRODUCT:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text())


def named(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def writes(node: ast.AST, function: str = "") -> Iterator[tuple[str, str]]:
    """The function and the verb of each write below a node; a method that is passed on counts as called."""
    for child in ast.iter_child_nodes(node):
        inside = (
            child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
        )
        if named(child) in WRITES | EXECS:
            yield inside, VERBS[named(child)]
        yield from writes(child, inside)


def sites() -> set[Site]:
    sent = {
        (path, *found) for path, tree in sources() if path not in DOORS for found in writes(tree)
    }
    assert sent >= SENDERS
    return (sent - SENDERS) | ACTIONS.keys()


def table() -> list[list[str]]:
    """The cells of each row of the table: where, function, verb, object, precondition, rights, policy."""
    lines = [line for line in PAGE.read_text().splitlines() if re.match(r"\| `[a-z_/]+\.py`", line)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def listed() -> list[Site]:
    return [(cells[0].strip("`"), cells[1].strip("`"), cells[2]) for cells in table()]


def test_each_write_is_in_the_table_once_and_the_table_names_no_other() -> None:
    rows = listed()
    assert len(rows) == len(set(rows))
    assert sorted(set(rows)) == sorted(sites())


def test_the_precondition_of_each_action_is_in_the_table() -> None:
    for site, cells in zip(listed(), table(), strict=True):
        kind, precondition = ACTIONS.get(site), cells[4]
        if kind and issubclass(kind, Patch | Delete):
            assert re.search(r"\buid\b|resourceVersion", precondition)
            assert ("resourceVersion" in precondition) == kind.at_version


def test_only_the_clients_of_kube_send_anything() -> None:
    assert set(VERBS) == WRITES | EXECS
    assert all(name.endswith("_object") for name in WRITES)
    senders = {
        path
        for path, tree in sources()
        for node in ast.walk(tree)
        if named(node) in {"_call_api", "ClientSession"}
    }
    assert senders == {"mpijob_elastic/kube/reader.py", "mpijob_elastic/kube/writer.py"}


def test_a_reader_has_no_method_that_writes() -> None:
    public = {name for name in vars(ApiReader) if not name.startswith("_")}
    assert public == {"credentials", "find", "get", "review", "stream", "websocket"}
    reviews = [
        path for path, tree in sources() for node in ast.walk(tree) if named(node) == "review"
    ]
    assert set(reviews) <= {"mpijob_elastic/install/server.py", *WEBHOOK_REVIEWS}


# Here `review` is the admission review that the API server sends.
WEBHOOK_REVIEWS = {
    path
    for path, _ in sources()
    if path.startswith(("webhook/", "mpijob_elastic/admission/")) or path.endswith("/hook.py")
}


@pytest.mark.parametrize("cells", table(), ids=lambda cells: f"{cells[0]}-{cells[1]}-{cells[2]}")
def test_each_right_is_granted_and_each_policy_exists(cells: list[str]) -> None:
    *_, rights, policy = cells
    for file, resources, verb in re.findall(
        r"`(config/[a-z/_-]+\.yaml)` ([a-z/, ]+): ([a-z]+)", rights
    ):
        for resource in resources.split(", "):
            assert verb in granted(ROOT / file, resource), f"{file}: {resource}"
    for file in re.findall(r"`([a-z-]+\.yaml)`", policy):
        assert (ROOT / "config/components/guard" / file).exists()
    if re.match(r"`(mpijob_elastic/(act|capabilities|decide|kube)|webhook)/", cells[0]):
        assert rights.startswith(
            ("`config/base/", "`config/components/guard/", "`config/components/et-operator/")
        )
    else:
        assert rights == "the user's"


def granted(file: Path, resource: str) -> set[str]:
    manifests = list(yaml.safe_load_all(file.read_text()))
    rules = [
        rule
        for manifest in manifests
        if isinstance(manifest, dict)
        for rule in manifest.get("rules", [])
    ]
    rules += [
        patch["value"] for patches in manifests if isinstance(patches, list) for patch in patches
    ]
    return {verb for rule in rules if resource in rule["resources"] for verb in rule["verbs"]}


def test_each_policy_guards_a_write_of_the_table() -> None:
    guards = {path.name for path in (ROOT / "config/components/guard").glob("*.yaml")} - {
        "kustomization.yaml"
    }
    assert {
        file for cells in table() for file in re.findall(r"`([a-z-]+\.yaml)`", cells[-1])
    } == guards
