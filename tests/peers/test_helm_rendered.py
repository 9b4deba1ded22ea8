"""The chart renders the objects of config/, object by object, and refuses values that it does not know."""

import json
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import combinations
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from lab import chart
from lab.release import chart as release_chart
from lab.release.places import Places
from mpijob_elastic import __version__
from mpijob_elastic.install import overlays
from mpijob_elastic.install.objects import by_identity
from mpijob_elastic.install.overlays import RIGHTS_TO_EVICT, Overlay, for_jobs_in, with_image
from mpijob_elastic.install.server import OLDEST
from tests.peers.chart import refusal, rendered, run

pytestmark = pytest.mark.peers
TEAMS = ["team-a", "team-b"]
WHOLE = {"namespace": {"create": True}}
VALUES: dict[Overlay, dict[str, Any]] = {
    Overlay.CERT_MANAGER: {"certManager": {"enabled": True}},
    Overlay.SINGLE_NAMESPACE: {"jobsNamespaces": TEAMS},
    Overlay.PROMETHEUS: {"monitoring": {"enabled": True}},
    Overlay.ET_OPERATOR: {"etOperator": {"enabled": True}},
    Overlay.USER_ROLES: {"userRoles": {"enabled": True}},
}
SUBSETS = [chosen for size in range(len(VALUES) + 1) for chosen in combinations(VALUES, size)]
GUARD = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
SIGNS = ["example.com/going:NoSchedule", "condition:Going=False", "label:example.com/health=a,b"]


def pods(objects: Any) -> dict[str, Any]:
    """The pod templates of the Deployments by component."""
    found = [one for identity, one in objects.items() if identity.kind == "Deployment"]
    return {one["metadata"]["labels"]["app.kubernetes.io/component"]: one["spec"] for one in found}


@pytest.mark.parametrize("chosen", SUBSETS, ids=lambda chosen: "+".join(chosen) or "default")
def test_the_chart_is_config(helm: Path, chosen: tuple[Overlay, ...]) -> None:
    values = WHOLE
    for overlay in chosen:
        values = values | VALUES[overlay]
    expected = by_identity(for_jobs_in(overlays.combined(chosen), TEAMS))
    found = rendered(helm, values)
    assert found.keys() == expected.keys()
    assert {str(one) for one in expected if found[one] != expected[one]} == set()


@pytest.mark.parametrize("group", ["ml@example.com", "true", ""])
def test_the_value_for_readers_of_the_lease_is_the_option(helm: Path, group: str) -> None:
    expected = overlays.with_lease_readers(overlays.combined([Overlay.USER_ROLES]), group)
    values = {"userRoles": {"enabled": True, "leaseReaders": group}}
    assert rendered(helm, WHOLE | values) == by_identity(expected)


@pytest.mark.parametrize("more", [{}, VALUES[Overlay.CERT_MANAGER]], ids=["own", "cert-manager"])
def test_the_value_for_pods_without_labels_is_the_option(helm: Path, more: dict[str, Any]) -> None:
    chosen = (Overlay.CERT_MANAGER,) if more else ()
    expected = overlays.without_template_labels(overlays.combined(chosen))
    found = rendered(helm, WHOLE | more | {"webhook": {"templateLabels": False}})
    assert found == by_identity(expected)


def test_chart_and_index_in_one_folder_are_a_repository(
    helm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    packed = folder / release_chart.FILE
    release_chart.write(packed, Places())
    (folder / "index.yaml").write_text(release_chart.index(packed, Places()))
    for name in ("CACHE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"HELM_{name}_HOME", str(tmp_path / name))
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        serving = Thread(target=server.serve_forever)
        serving.start()
        try:
            address = f"http://127.0.0.1:{server.server_port}"
            done = run(helm, "repo", "add", "ours", address)
            assert done.returncode == 0, done.stderr
            done = run(helm, "pull", "ours/mpijob-elastic", f"--destination={tmp_path}")
            assert done.returncode == 0, done.stderr
        finally:
            server.shutdown()
            serving.join()
    assert (tmp_path / release_chart.FILE).read_bytes() == packed.read_bytes()


def test_the_packed_chart_of_a_release_is_the_chart(helm: Path, tmp_path: Path) -> None:
    packed = tmp_path / "chart.tgz"
    release_chart.write(packed, Places())
    assert f"appVersion: {__version__}" in run(helm, "show", "chart", str(packed)).stdout
    for values in ({}, *VALUES.values()):
        assert rendered(helm, values, chart=packed) == rendered(helm, values)


def test_the_packed_chart_of_a_release_runs_its_image(helm: Path, tmp_path: Path) -> None:
    packed, places = tmp_path / "chart.tgz", Places(image="registry.example/team/mpijob-elastic")
    release_chart.write(packed, places)
    expected = with_image(overlays.rendered(overlays.DEFAULT), places.reference)
    assert rendered(helm, WHOLE, chart=packed) == by_identity(expected)


@pytest.mark.parametrize(
    ("values", "kubernetes", "kinds"),
    [
        ({}, "1.34.4", {"Namespace"}),
        (
            WHOLE | {"guard": {"enabled": False}},
            "1.34.4",
            GUARD,
        ),
        (WHOLE | {"flowControl": {"enabled": False}}, "1.34.4", {"FlowSchema"}),
        (WHOLE, "1.29.9", GUARD),
        (WHOLE, "1.28.0", GUARD | {"FlowSchema"}),
    ],
)
def test_parts_are_left_out(
    helm: Path, values: dict[str, Any], kubernetes: str, kinds: set[str]
) -> None:
    everything = by_identity(overlays.rendered(overlays.DEFAULT))
    found = rendered(helm, values, kubernetes=kubernetes)
    rights = {one for one in everything if one.name == RIGHTS_TO_EVICT and kinds >= GUARD}
    assert (
        everything.keys() - found.keys()
        == {one for one in everything if one.kind in kinds} | rights
    )


def test_the_image_by_tag_and_by_digest(helm: Path) -> None:
    digest = f"sha256:{'0' * 64}"
    for image, expected in (
        ({"repository": "registry/ours"}, f"registry/ours:{__version__}"),
        ({"repository": "registry/ours", "tag": "new"}, "registry/ours:new"),
        (
            {"repository": "registry/ours", "tag": "new", "digest": digest},
            f"registry/ours@{digest}",
        ),
    ):
        found = rendered(helm, WHOLE | {"image": image})
        assert found == by_identity(with_image(overlays.rendered(overlays.DEFAULT), expected))


def test_values_of_pods_reach_both_deployments(helm: Path) -> None:
    placed = {
        "replicas": 3,
        "resources": {"requests": {"cpu": "1"}},
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "system", "operator": "Exists", "effect": "NoSchedule"}],
    }
    found = pods(
        rendered(
            helm, {"controller": placed, "webhook": placed, "image": {"pullSecrets": ["registry"]}}
        )
    )
    assert found.keys() == {"controller", "webhook"}
    for spec in found.values():
        pod = spec["template"]["spec"]
        assert spec["replicas"] == 3
        assert pod["nodeSelector"] == placed["nodeSelector"]
        assert pod["tolerations"] == placed["tolerations"]
        assert pod["imagePullSecrets"] == [{"name": "registry"}]
        assert pod["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "128Mi"}


def test_signs_of_nodes_are_arguments_of_the_controller(helm: Path) -> None:
    values = {
        "controller": {"disruptionSigns": SIGNS, "ignoredDisruptionSigns": ["condition:Other"]}
    }
    arguments = pods(rendered(helm, values))["controller"]["template"]["spec"]["containers"][0][
        "args"
    ]
    expected = [
        *(f"--disruption-sign={sign}" for sign in SIGNS),
        "--ignore-disruption-sign=condition:Other",
    ]
    assert arguments[3:] == expected


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"replica": 3}, "replica"),
        (
            {"etOperator": {"enabled": True}, "guard": {"enabled": False}},
            "etOperator.enabled needs guard.enabled",
        ),
        ({"controller": {"replcas": 3}}, "replcas"),
        ({"controller": {"resources": {"limit": {}}}}, "limit"),
        ({"controller": {"tolerations": [{"efect": "NoSchedule"}]}}, "efect"),
        ({"guard": {"enable": True}}, "enable"),
        ({"guard": {"enabled": "yes"}}, "boolean"),
        ({"webhook": {"replicas": 0}}, "minimum"),
        ({"image": {"digest": "abc"}}, "digest"),
        ({"userRoles": {"leaseReaders": ["a"]}}, "leaseReaders"),
        ({"jobsNamespace": "team-a"}, "jobsNamespace"),
        ({"jobsNamespaces": ["Team A"]}, "jobsNamespaces"),
        ({"jobsNamespaces": ["a", "a"]}, "are equal"),
        ({"jobsNamespaces": ["team-a", "kube-system"]}, "never managed"),
    ],
)
def test_what_is_misspelt_is_refused(helm: Path, values: dict[str, Any], named: str) -> None:
    assert named in refusal(helm, values)


def test_every_value_and_no_other_is_in_the_schema() -> None:
    values = yaml.safe_load((chart.CHART / "values.yaml").read_text())
    schema = json.loads((chart.CHART / "values.schema.json").read_text())
    assert schema["properties"].keys() - {"global"} == values.keys()
    for name, part in values.items():
        if isinstance(part, dict):
            assert schema["properties"][name]["properties"].keys() == part.keys(), name


def test_lint_finds_nothing(helm: Path) -> None:
    done = run(helm, "lint", str(chart.CHART), "--strict", "--kube-version=1.34.4")
    assert done.returncode == 0, done.stdout


def test_a_kubernetes_without_match_conditions_is_refused(helm: Path) -> None:
    done = run(helm, "template", "release", str(chart.CHART), f"--kube-version=1.{OLDEST - 1}.16")
    assert (
        "chart requires kubeVersion: >=1.28.0-0 which is incompatible with Kubernetes"
        in done.stderr
    )
    assert done.returncode == 1


def test_another_namespace_is_refused(helm: Path) -> None:
    done = run(
        helm, "template", "release", str(chart.CHART), "--kube-version=1.34.4", namespace="other"
    )
    assert "--namespace mpijob-elastic --create-namespace" in done.stderr
