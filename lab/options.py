"""Options of a lab, apart from its name."""

from dataclasses import dataclass

from lab.errors import LabError
from lab.versions import DEFAULT_KUBERNETES, KubernetesVersion

DEFAULT_NODES = 3
MAX_NODES = 1000
MAX_REAL_NODES = 8  # each has a kubelet and a containerd, and images of its own


@dataclass(frozen=True, kw_only=True)
class Options:
    """`nodes` pretended nodes, `real_nodes` that run pods, and the Kubernetes version, as `v1.34.4`.

    Pretended nodes beside real ones have a taint (lab.nodes.PRETENDED), so that pods go to the real
    ones. `gangs`: with PodGroups of Kubernetes' own, from 1.36 on (components.GANGS).
    `admission_plugins`: those of the API server beside its default ones.
    """

    nodes: int = DEFAULT_NODES
    real_nodes: int = 0
    kubernetes_version: str = str(DEFAULT_KUBERNETES)
    gangs: bool = False
    admission_plugins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what could not start, before anything is started."""
        if not 0 <= self.nodes <= MAX_NODES:
            raise LabError(f"--nodes is {self.nodes}; allowed are 0 to {MAX_NODES}.")
        if not 0 <= self.real_nodes <= MAX_REAL_NODES:
            raise LabError(f"--real-nodes is {self.real_nodes}; allowed are 0 to {MAX_REAL_NODES}.")
        KubernetesVersion.parse(self.kubernetes_version)
