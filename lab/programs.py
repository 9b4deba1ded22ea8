"""The programs that a lab runs: which ones, where they may come from, and which versions will do.

Each is taken from the first of: the directory KUBEBUILDER_ASSETS, the directories of PATH, the cache of built programs.
What is found in the first two must be the right program in a version that works. Programs without a version command are
only built: podexec and pause, which are ours, and the two releases of mpi-operator.
"""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import msgspec

from lab.versions import KubernetesVersion

Triple = tuple[int, int, int]
# The first release with the progress notifications that WatchList needs; Debian 12 has etcd 3.4.
OLDEST_ETCD: Triple = (3, 5, 13)
# The stages in manifests/kwok-stages.yaml are written for this one.
KWOK: Triple = (0, 8, 0)


class Programs(msgspec.Struct, frozen=True, kw_only=True):
    """Path of each program."""

    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kube_scheduler: Path
    kubectl: Path
    kwok: Path
    podexec: Path
    mpi_operator_v0_2_3: Path
    mpi_controller_v0_2_3: Path
    kubelet: Path | None = None  # these three for real nodes only
    kube_proxy: Path | None = None
    pause: Path | None = None


@dataclass(frozen=True)
class Program:
    """A program, its build (`seconds` with an empty cache on two cores), and the command for its version.

    `module` is a directory of lab/binaries.
    """

    name: str
    module: str
    package: str
    seconds: int
    version_command: tuple[str, ...] = ()
    version_pattern: str = ""

    @property
    def field(self) -> str:
        """Its field in Programs."""
        return self.name.replace("-", "_").replace(".", "_")


def _kubernetes(name: str, seconds: int) -> Program:
    pattern = r"Kubernetes v(\d+)\.(\d+)\.(\d+)"
    return Program(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", seconds, ("--version",), pattern)


_ETCD, _KWOK = r"etcd Version: (\d+)\.(\d+)\.(\d+)", r"kwok version v(\d+)\.(\d+)\.(\d+)"
_KUBECTL = r"Client Version: v(\d+)\.(\d+)\.(\d+)"
_MPI_OPERATOR = "github.com/kubeflow/mpi-operator/cmd/mpi-operator.v1"
ALL = (
    Program("etcd", "etcd", "go.etcd.io/etcd/server/v3", 40, ("--version",), _ETCD),
    _kubernetes("kube-apiserver", 190),
    _kubernetes("kube-controller-manager", 60),
    _kubernetes("kube-scheduler", 10),
    Program("kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl", 20, ("version", "--client"), _KUBECTL),
    Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", 60, ("--version",), _KWOK),
    Program("podexec", "podexec", ".", 5),
    # The release's own program, and its controller in a main of ours: see lab/binaries/mpi-operator-v0.2.3/main.go.
    Program("mpi-operator-v0.2.3", "mpi-operator-v0.2.3", _MPI_OPERATOR, 30),
    Program("mpi-controller-v0.2.3", "mpi-operator-v0.2.3", ".", 5),
)
# The elastic operator with which tests and benchmarks compare us; not built before they need it.
COMPARED = (
    Program("mpi-operator-v0.3.0", "mpi-operator-v0.3.0", _MPI_OPERATOR, 40),
    Program("mpi-controller-v0.3.0", "mpi-operator-v0.3.0", ".", 5),
)
OF_REAL_NODE = (_kubernetes("kubelet", 60), _kubernetes("kube-proxy", 15), Program("pause", "pause", ".", 5))

# What other projects run beside us, in tests only: too heavy to build unasked (`make test-peers`).
PEERS = (
    Program("helm", "helm", "helm.sh/helm/v3/cmd/helm", 130),
    Program("prometheus-adapter", "prometheus-adapter", "sigs.k8s.io/prometheus-adapter/cmd/adapter", 150),
    Program("cert-manager", "cert-manager", ".", 180),
    Program("keda-operator", "keda", "github.com/kedacore/keda/v2/cmd/operator", 400),
    Program("keda-adapter", "keda", "github.com/kedacore/keda/v2/cmd/adapter", 30),
    Program("metrics-server", "metrics-server", "sigs.k8s.io/metrics-server/cmd/metrics-server", 190),
    Program("volcano-scheduler", "volcano", "volcano.sh/volcano/cmd/scheduler", 400),
    Program("coscheduler", "scheduler-plugins", "sigs.k8s.io/scheduler-plugins/cmd/scheduler", 350),
    Program("koord-scheduler", "koordinator", "github.com/koordinator-sh/koordinator/cmd/koord-scheduler", 400),
    Program("kueue", "kueue", "sigs.k8s.io/kueue/cmd/kueue", 500),
    Program("karmadactl", "karmada", "github.com/karmada-io/karmada/cmd/karmadactl", 200),
)

# Those inside kubectl 1.28 and 1.32, small enough for the test that needs them to build them. kubectl 1.28 has a commit
# shortly before v5.0.4.
_KUSTOMIZE = "sigs.k8s.io/kustomize/kustomize/v5"
KUSTOMIZES = (
    Program("kustomize-v5.0.4", "kustomize-v5.0.4", _KUSTOMIZE, 25),
    Program("kustomize-v5.5.0", "kustomize-v5.5.0", _KUSTOMIZE, 15),
)


@dataclass(frozen=True, kw_only=True)
class Found:
    """Path of a program; `refused` has the reason why each other file of that name is not used."""

    path: Path | None
    refused: tuple[str, ...]


def find_installed(program: Program, version: KubernetesVersion) -> Found:
    """Look for a program that the user has installed."""
    refused: list[str] = []
    for path in _candidates(program) if program.version_command else ():
        reason = _unsuitable(program, path, version)
        if reason is None:
            return Found(path=path, refused=tuple(refused))
        refused.append(f"{path} is not used: {reason}")
    return Found(path=None, refused=tuple(refused))


def _candidates(program: Program) -> list[Path]:
    path = os.environ.get("PATH", "").split(os.pathsep)
    directories = [Path(one).absolute() for one in (os.environ.get("KUBEBUILDER_ASSETS", ""), *path) if one]
    files = (directory / program.name for directory in directories)
    # /bin and /usr/bin are the same directory on a Debian of today: ask each file once.
    return list({path.resolve(): path for path in files if os.access(path, os.X_OK) and path.is_file()}.values())


def _unsuitable(program: Program, path: Path, kubernetes: KubernetesVersion) -> str | None:
    found = _version(program, path)
    if found is None:
        return f"it does not answer `{' '.join(program.version_command)}` as {program.name} does"
    text = ".".join(map(str, found))
    match program.name:
        case "etcd":
            return None if found >= OLDEST_ETCD else f"it is {text}, and at least {_text(OLDEST_ETCD)} is needed"
        case "kwok":
            return None if found[:2] == KWOK[:2] else f"it is {text}, and {_text(KWOK[:2])} is needed"
        case "kubectl":  # https://kubernetes.io/releases/version-skew-policy/#kubectl
            near = found[0] == kubernetes.major and abs(found[1] - kubernetes.minor) <= 1
            return None if near else f"it is {text}, more than one minor version from {kubernetes}"
        case _:
            same = found[:2] == (kubernetes.major, kubernetes.minor)
            return None if same else f"it is {text}, and {kubernetes.major}.{kubernetes.minor} is needed"


def _version(program: Program, path: Path) -> Triple | None:
    command = [str(path), *program.version_command]
    try:
        output = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10).stdout
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    match = re.search(program.version_pattern, output)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
