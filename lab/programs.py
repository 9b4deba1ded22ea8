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
from typing import Literal

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


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program, its build (`seconds` with an empty cache on two cores), and the command for its version."""

    name: str
    module: Literal[
        "etcd",
        "kubernetes",
        "kwok",
        "podexec",
        "pause",
        "mpi-operator-v0.2.3",
        "mpi-operator-v0.3.0",
        "helm",
        "prometheus-adapter",
        "cert-manager",
        "keda",
        "metrics-server",
        "volcano",
        "scheduler-plugins",
        "koordinator",
        "kueue",
        "kueue-v0.14",
        "karmada",
        "kustomize-v5.0.4",
        "kustomize-v5.5.0",
    ]
    package: str
    seconds: int
    version_command: tuple[str, ...] = ()
    version_pattern: str = ""

    @property
    def field(self) -> str:
        """Its field in Programs."""
        return self.name.replace("-", "_").replace(".", "_")


def _kubernetes(name: str, *, seconds: int) -> Program:
    return Program(
        name=name,
        module="kubernetes",
        package=f"k8s.io/kubernetes/cmd/{name}",
        seconds=seconds,
        version_command=("--version",),
        version_pattern=r"Kubernetes v(\d+)\.(\d+)\.(\d+)",
    )


_MPI_OPERATOR = "github.com/kubeflow/mpi-operator/cmd/mpi-operator.v1"
ALL = (
    Program(
        name="etcd",
        module="etcd",
        package="go.etcd.io/etcd/server/v3",
        seconds=60,
        version_command=("--version",),
        version_pattern=r"etcd Version: (\d+)\.(\d+)\.(\d+)",
    ),
    _kubernetes("kube-apiserver", seconds=300),
    _kubernetes("kube-controller-manager", seconds=90),
    _kubernetes("kube-scheduler", seconds=10),
    Program(
        name="kubectl",
        module="kubernetes",
        package="k8s.io/kubernetes/cmd/kubectl",
        seconds=30,
        version_command=("version", "--client"),
        version_pattern=r"Client Version: v(\d+)\.(\d+)\.(\d+)",
    ),
    Program(
        name="kwok",
        module="kwok",
        package="sigs.k8s.io/kwok/cmd/kwok",
        seconds=100,
        version_command=("--version",),
        version_pattern=r"kwok version v(\d+)\.(\d+)\.(\d+)",
    ),
    Program(name="podexec", module="podexec", package=".", seconds=10),
    # The release's own program, and its controller in a main of ours: see lab/binaries/mpi-operator-v0.2.3/main.go.
    Program(name="mpi-operator-v0.2.3", module="mpi-operator-v0.2.3", package=_MPI_OPERATOR, seconds=40),
    Program(name="mpi-controller-v0.2.3", module="mpi-operator-v0.2.3", package=".", seconds=5),
)
# The elastic operator with which tests and benchmarks compare us; not built before they need it.
COMPARED = (
    Program(name="mpi-operator-v0.3.0", module="mpi-operator-v0.3.0", package=_MPI_OPERATOR, seconds=40),
    Program(name="mpi-controller-v0.3.0", module="mpi-operator-v0.3.0", package=".", seconds=5),
)
OF_REAL_NODE = (
    _kubernetes("kubelet", seconds=60),
    _kubernetes("kube-proxy", seconds=15),
    Program(name="pause", module="pause", package=".", seconds=5),
)

# What other projects run beside us, in tests only: too heavy to build unasked (`make test-peers`).
_KEDA = "github.com/kedacore/keda/v2/cmd"
PEERS = (
    Program(name="helm", module="helm", package="helm.sh/helm/v3/cmd/helm", seconds=130),
    Program(
        name="prometheus-adapter",
        module="prometheus-adapter",
        package="sigs.k8s.io/prometheus-adapter/cmd/adapter",
        seconds=150,
    ),
    Program(name="cert-manager", module="cert-manager", package=".", seconds=180),
    Program(name="keda-operator", module="keda", package=f"{_KEDA}/operator", seconds=400),
    Program(name="keda-adapter", module="keda", package=f"{_KEDA}/adapter", seconds=30),
    Program(
        name="metrics-server",
        module="metrics-server",
        package="sigs.k8s.io/metrics-server/cmd/metrics-server",
        seconds=190,
    ),
    Program(name="volcano-scheduler", module="volcano", package="volcano.sh/volcano/cmd/scheduler", seconds=400),
    Program(
        name="coscheduler",
        module="scheduler-plugins",
        package="sigs.k8s.io/scheduler-plugins/cmd/scheduler",
        seconds=350,
    ),
    Program(
        name="koord-scheduler",
        module="koordinator",
        package="github.com/koordinator-sh/koordinator/cmd/koord-scheduler",
        seconds=400,
    ),
    Program(name="kueue", module="kueue", package="sigs.k8s.io/kueue/cmd/kueue", seconds=500),
    # The last with v1beta1 alone.
    Program(name="kueue-v0.14", module="kueue-v0.14", package="sigs.k8s.io/kueue/cmd/kueue", seconds=500),
    Program(name="karmadactl", module="karmada", package="github.com/karmada-io/karmada/cmd/karmadactl", seconds=200),
)

# Those inside kubectl 1.28 and 1.32, small enough for the test that needs them to build them. kubectl 1.28 has a commit
# shortly before v5.0.4.
_KUSTOMIZE = "sigs.k8s.io/kustomize/kustomize/v5"
KUSTOMIZES = (
    Program(name="kustomize-v5.0.4", module="kustomize-v5.0.4", package=_KUSTOMIZE, seconds=25),
    Program(name="kustomize-v5.5.0", module="kustomize-v5.5.0", package=_KUSTOMIZE, seconds=15),
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
