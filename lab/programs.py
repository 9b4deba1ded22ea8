"""The programs that a lab runs, and those that tests run beside it: how each is built."""

from dataclasses import dataclass
from pathlib import Path

import msgspec


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
    """A program and its build: `module` is a directory of lab/binaries; `seconds` with an empty cache on two cores."""

    name: str
    module: str
    package: str
    seconds: int

    @property
    def field(self) -> str:
        """Its field in Programs."""
        return self.name.replace("-", "_").replace(".", "_")


def _kubernetes(name: str, seconds: int) -> Program:
    return Program(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", seconds)


_MPI_OPERATOR = "github.com/kubeflow/mpi-operator/cmd/mpi-operator.v1"
ALL = (
    Program("etcd", "etcd", "go.etcd.io/etcd/server/v3", 40),
    _kubernetes("kube-apiserver", 190),
    _kubernetes("kube-controller-manager", 60),
    _kubernetes("kube-scheduler", 10),
    _kubernetes("kubectl", 20),
    Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", 60),
    Program("podexec", "podexec", ".", 5),
    # The release's own program, and its controller in a main of ours: see
    # lab/binaries/mpi-operator-v0.2.3/main.go.
    Program("mpi-operator-v0.2.3", "mpi-operator-v0.2.3", _MPI_OPERATOR, 30),
    Program("mpi-controller-v0.2.3", "mpi-operator-v0.2.3", ".", 5),
)
# The elastic operator with which tests and benchmarks compare us; not built before they need it.
COMPARED = (
    Program("mpi-operator-v0.3.0", "mpi-operator-v0.3.0", _MPI_OPERATOR, 40),
    Program("mpi-controller-v0.3.0", "mpi-operator-v0.3.0", ".", 5),
)
OF_REAL_NODE = (
    _kubernetes("kubelet", 60),
    _kubernetes("kube-proxy", 15),
    Program("pause", "pause", ".", 5),
)

# What other projects run beside us, in tests only: too heavy to build unasked (`make test-peers`).
PEERS = (
    Program("helm", "helm", "helm.sh/helm/v3/cmd/helm", 130),
    Program("helm-v4", "helm-v4", "helm.sh/helm/v4/cmd/helm", 130),
    Program(
        "prometheus-adapter",
        "prometheus-adapter",
        "sigs.k8s.io/prometheus-adapter/cmd/adapter",
        150,
    ),
    Program("cert-manager", "cert-manager", ".", 180),
    Program("keda-operator", "keda", "github.com/kedacore/keda/v2/cmd/operator", 400),
    Program("keda-adapter", "keda", "github.com/kedacore/keda/v2/cmd/adapter", 30),
    Program(
        "metrics-server", "metrics-server", "sigs.k8s.io/metrics-server/cmd/metrics-server", 190
    ),
    Program("volcano-scheduler", "volcano", "volcano.sh/volcano/cmd/scheduler", 400),
    Program("coscheduler", "scheduler-plugins", "sigs.k8s.io/scheduler-plugins/cmd/scheduler", 350),
    Program(
        "koord-scheduler",
        "koordinator",
        "github.com/koordinator-sh/koordinator/cmd/koord-scheduler",
        400,
    ),
    Program("kueue", "kueue", "sigs.k8s.io/kueue/cmd/kueue", 500),
    Program("karmadactl", "karmada", "github.com/karmada-io/karmada/cmd/karmadactl", 200),
    Program("arena", "arena", "github.com/kubeflow/arena/cmd/arena", 200),
)

# Those inside kubectl 1.28 and 1.32, small enough for the test that needs them to build them.
# kubectl 1.28 has a commit shortly before v5.0.4.
_KUSTOMIZE = "sigs.k8s.io/kustomize/kustomize/v5"
KUSTOMIZES = (
    Program("kustomize-v5.0.4", "kustomize-v5.0.4", _KUSTOMIZE, 25),
    Program("kustomize-v5.5.0", "kustomize-v5.5.0", _KUSTOMIZE, 15),
)

# Reads texts by the modules that kubectl reads files with; the test that needs it builds it.
KUBECTL_YAML = Program("kubectl-yaml", "kubectl-yaml", ".", 10)

# kubectl's package manager; the test of our plugin for it builds it.
KREW = Program("krew", "krew", "sigs.k8s.io/krew/cmd/krew", 20)
