"""A kind cluster in a lab's place, with docker, kind and kubectl that only write down what they were asked for."""

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from lab.errors import LabError
from lab.install import install_into
from lab.kindcluster import KindCluster, workers
from lab.layout import Layout
from lab.options import Options

NAME = "real-1"
CLUSTER = f"mpijob-lab-{NAME}"
FIRST, SECOND = f"{CLUSTER}-worker", f"{CLUSTER}-worker2"
SERVER = "https://127.0.0.1:40001"
OPTIONS = Options(nodes=0, real_nodes=2)

RECORD = '#!/bin/sh\necho "${0##*/} $*" >> "$TOOLS/log"\n'
KIND = """
[ "$1-$2" = create-cluster ] || exit 0
/bin/cat > "$TOOLS/config"
for one; do case $one in --kubeconfig=*) /bin/cp "$TOOLS/kubeconfig" "${one#*=}" ;; esac; done
"""
# One node runs or does not.
DOCKER = """
case $1-$2 in
container-inspect) if [ -e "$TOOLS/down" ]; then echo false; else echo true; fi ;;
kill-*) : > "$TOOLS/down" ;;
start-*) /bin/rm "$TOOLS/down" ;;
network-inspect) /bin/cat "$TOOLS/gateways" ;;
esac
"""
# Answers about a node are in node.0, node.1, ..., an answer each.
KUBECTL = """
case " $* " in
*" -f - "*) /bin/cat > "$TOOLS/applied" ;;
*" create token "*) echo a-token ;;
*" get node "*) for one in "$TOOLS"/node.*; do /bin/cat "$one"; /bin/rm "$one"; break; done ;;
esac
"""
# Builds whatever is missing, which is then kubectl.
GO = """#!/bin/sh
case $1 in
env) echo go1.26.0 ;;
build)
  while [ "$1" != -o ]; do shift; done
  /bin/cp "$TOOLS/kubectl" "$2" ;;
esac
"""


class Tools:
    """All programs there are."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name, script in {"docker": RECORD + DOCKER, "kind": RECORD + KIND, "kubectl": RECORD + KUBECTL}.items():
            self._install(name, script)
        self._install("go", GO)
        authority = base64.b64encode(b"authority").decode()
        server = {"server": SERVER, "certificate-authority-data": authority}
        (root / "kubeconfig").write_text(yaml.safe_dump({"clusters": [{"name": "kind", "cluster": server}]}))
        self.gateways("fc00:f853:ccd:e793::1", "172.18.0.1")

    def gateways(self, *addresses: str) -> None:
        (self.root / "gateways").write_text("".join(f"{address}\n" for address in addresses))

    def answer(self, *nodes: dict[str, object] | None) -> None:
        for number, node in enumerate(nodes):
            (self.root / f"node.{number}").write_text(json.dumps(node) if node else "")

    def asked(self, program: str) -> list[str]:
        """Return what it was asked since the last time."""
        lines = (self.root / "log").read_text().splitlines()
        (self.root / "log").write_text("".join(f"{line}\n" for line in lines if not line.startswith(program)))
        return [line for line in lines if line.startswith(program)]

    def _install(self, name: str, script: str) -> None:
        path = self.root / name
        path.write_text(script)
        path.chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    root = tmp_path / "tools"
    root.mkdir()
    for name, value in {"PATH": root, "TOOLS": root, "XDG_CACHE_HOME": tmp_path, "XDG_STATE_HOME": tmp_path}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return Tools(root)


@pytest.fixture
def cluster(tools: Tools) -> Iterator[KindCluster]:
    with KindCluster.start(name=NAME, options=OPTIONS) as running:
        tools.asked("docker")  # whether it answers
        yield running


def node(*, heard: timedelta) -> dict[str, object]:
    """A Node that is ready, as its kubelet said so long from now."""
    time = (datetime.now(UTC) + heard).isoformat(timespec="seconds").replace("+00:00", "Z")
    return {"spec": {}, "status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": time}]}}


def test_it_has_two_workers_and_ends_with_the_block(tools: Tools) -> None:
    with KindCluster.start(name=NAME, options=OPTIONS) as cluster:
        assert cluster.server == SERVER
        (create,) = tools.asked("kind")
        assert create.split(" ", 4)[3:] == [
            f"--name={CLUSTER}",
            f"--kubeconfig={cluster.kubeconfig} --wait=180s --config=-",
        ]
        roles = [one["role"] for one in yaml.safe_load((tools.root / "config").read_text())["nodes"]]
        assert roles == ["control-plane", "worker", "worker"]
    assert tools.asked("kind") == [f"kind delete cluster --name={CLUSTER}"]
    assert not Layout.of(NAME).root.exists()


def test_another_release_is_another_image(tools: Tools) -> None:
    with KindCluster.start(name=NAME, options=Options(real_nodes=2, kubernetes_version="v1.33.5")):
        assert "--image=kindest/node:v1.33.5" in tools.asked("kind")[0].split()


def test_workers_are_called_as_kind_calls_them() -> None:
    assert workers(NAME, 3) == (FIRST, SECOND, f"{CLUSTER}-worker3")


def test_images_are_loaded_by_kind(tools: Tools, cluster: KindCluster) -> None:
    tools.asked("kind")
    cluster.load_image(Path("/images/one.tar"))
    assert tools.asked("kind") == [f"kind load image-archive /images/one.tar --name={CLUSTER}"]


def test_a_node_is_cut_off_before_it_is_killed(tools: Tools, cluster: KindCluster) -> None:
    cluster.kill_node(SECOND)
    assert tools.asked("docker")[1:] == [
        f"docker exec {SECOND} ip link set eth0 down",
        f"docker kill --signal=KILL {SECOND}",
    ]
    cluster.kill_node(SECOND)
    assert len(tools.asked("docker")) == 1, "it is down"


def test_a_node_that_was_started_is_waited_for_whatever_was_known_of_it_before(
    tools: Tools, cluster: KindCluster
) -> None:
    cluster.kill_node(SECOND)
    tools.asked("docker"), tools.asked("kubectl")
    minute = timedelta(minutes=1)
    tools.answer(None, node(heard=-minute), node(heard=minute), None)
    cluster.start_node(SECOND)
    assert tools.asked("docker")[1:] == [f"docker start {SECOND}"]
    assert len(tools.asked("kubectl")) == 3
    cluster.start_node(SECOND)
    assert (len(tools.asked("docker")), tools.asked("kubectl")) == (1, []), "it is up"


def test_webhooks_are_called_at_the_gateway_of_the_network(tools: Tools, cluster: KindCluster) -> None:
    installed = install_into(cluster)
    manifests = json.loads((tools.root / "applied").read_text())["items"]
    hooks = [hook for one in manifests for hook in one.get("webhooks", ())]
    urls = [hook["clientConfig"]["url"] for hook in hooks]
    assert urls
    assert all(f"{url}/".startswith(f"https://172.18.0.1:{installed.webhook_port}/") for url in urls)


def test_a_network_without_a_gateway_of_ipv4_is_told(tools: Tools, cluster: KindCluster) -> None:
    tools.gateways("fc00:f853:ccd:e793::1")
    with pytest.raises(LabError, match=r"no IPv4 gateway.*fc00"):
        _ = cluster.machine


def test_a_service_account_has_a_token_of_kubectl(tools: Tools, cluster: KindCluster) -> None:
    tools.asked("kubectl")
    written = yaml.safe_load(cluster.service_account_kubeconfig("default", "one").read_text())
    assert tools.asked("kubectl")[0].endswith("create token one --namespace default --duration=86400s")
    assert written["users"][0]["user"] == {"token": "a-token"}
    assert written["clusters"][0]["cluster"]["server"] == SERVER
