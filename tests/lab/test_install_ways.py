"""Whoever installs in one way and then in another meets no conflict, as long as nobody has changed anything."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from itertools import combinations, permutations
from typing import Any

import pytest

from lab.render import OVERLAYS
from mpijob_elastic import names
from mpijob_elastic.install.installer import InstallPlan
from mpijob_elastic.install.objects import Manifest
from mpijob_elastic.install.overlays import Overlay
from tests.lab.command_line import IMAGE, UNINSTALL, CommandLine
from tests.lab.deaths import drawn
from tests.lab.definitions import CERT_MANAGER, PROMETHEUS_OPERATOR, served

pytestmark = [pytest.mark.lab, pytest.mark.thorough]

SERVER_SIDE = ("apply", "--server-side")
# With the same image as `install --image`.
KUSTOMIZATION = ("-k", str(OVERLAYS / "default"))


def printed(lab: CommandLine) -> None:
    """For a GitOps tool that applies on the server."""
    text = lab.done("install", f"--image={IMAGE}", "--print")
    lab.cluster.kubectl(*SERVER_SIDE, "--field-manager=gitops", "-f", "-", stdin=text)


WAYS: dict[str, Callable[[CommandLine], object]] = {
    "command": lambda lab: lab.install(),
    "kustomize": lambda lab: lab.cluster.kubectl(*SERVER_SIDE, *KUSTOMIZATION),
    "kustomize on the client": lambda lab: lab.cluster.kubectl("apply", *KUSTOMIZATION),
    "printed": printed,
}


@pytest.fixture
def clean(lab: CommandLine) -> CommandLine:
    """Nothing of ours is there, whoever made it."""
    lab.done(*UNINSTALL)
    return lab


# Together they take minutes: a run draws a third of them by date, and `make long` runs all.
PAIRS = drawn([*permutations(WAYS, 2)], every=3)


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=lambda way: way.replace(" ", "-"))
def test_one_way_after_another_meets_no_conflict(
    clean: CommandLine, first: str, second: str
) -> None:
    WAYS[first](clean)
    WAYS[second](clean)
    WAYS[first](clean)


CHOICES = [chosen for size in range(3) for chosen in combinations(Overlay, size)]


@pytest.fixture(scope="module")
def with_all_definitions(
    lab: CommandLine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CommandLine]:
    """The definitions that overlays need are served, and of ours there is the namespace alone."""
    lab.done(*UNINSTALL)
    with ExitStack() as stack:
        for release in (CERT_MANAGER, PROMETHEUS_OPERATOR):
            folder = tmp_path_factory.mktemp("definitions")
            stack.enter_context(served(lab.cluster, release, folder))
        lab.cluster.kubectl(*SERVER_SIDE, "-f", "-", stdin=json.dumps(NAMESPACE))
        yield lab


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names.NAMESPACE}}


@pytest.mark.parametrize("template_labels", [True, False])
@pytest.mark.parametrize("chosen", CHOICES, ids=lambda chosen: "+".join(chosen) or "default")
def test_what_is_owned_as_a_whole_is_stored_as_it_is_written(
    with_all_definitions: CommandLine, chosen: tuple[Overlay, ...], *, template_labels: bool
) -> None:
    """A default within a list that has no keys would differ from what the next one applies."""
    inside = ("jobs",) if Overlay.SINGLE_NAMESPACE in chosen else ()
    plan = InstallPlan(overlays=chosen, jobs_namespaces=inside, template_labels=template_labels)
    manifests = plan.manifests()
    flags = ("--dry-run=server", "--show-managed-fields", "-o", "json")
    together = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
    said = with_all_definitions.cluster.kubectl(
        *SERVER_SIDE, *flags, "--field-manager=trial", "-f", "-", stdin=together
    )
    stored = json.loads(said)["items"]
    assert len(stored) == len(manifests)
    assert [
        f"{one['kind']} {one['metadata']['name']}: {path}"
        for manifest, one in zip(manifests, stored, strict=True)
        for path in differing(manifest, one)
    ] == []


def differing(manifest: Manifest, stored: Manifest) -> Iterator[str]:
    """Yield the fields that the last to apply owns as a whole and that are not as written."""
    [owned] = [
        entry["fieldsV1"]
        for entry in stored["metadata"]["managedFields"]
        if entry["manager"] == "trial"
    ]
    yield from _differing(owned, manifest, stored, "")


def _differing(owned: Mapping[str, Any], written: Any, stored: Any, path: str) -> Iterator[str]:
    if not owned:
        if written != stored:
            yield path
        return
    for key, below in owned.items():
        kind, _, name = key.partition(":")
        if kind == "f":
            yield from _differing(below, written[name], stored[name], f"{path}.{name}")
        elif kind == "k":
            keys = json.loads(name).items()
            one, other = (_found(items, keys) for items in (written, stored))
            yield from _differing(below, one, other, f"{path}[{name}]")


def _found(items: Any, keys: Any) -> Any:
    """Return the item with these keys, of which the API server may have added some."""
    return next(one for one in items if all(one.get(key, value) == value for key, value in keys))
