"""The job of the demo, and the changes that a user makes to it."""

from dataclasses import dataclass
from typing import Literal

from lab.cluster import Cluster
from mpijob_elastic import names

NAMESPACE = "default"
NAME = "train"
# As a user of Elastic Horovod writes it; the images are never pulled.
MANIFEST = f"""\
apiVersion: kubeflow.org/v1
kind: MPIJob
metadata:
  name: {NAME}
  annotations:
    {names.DRAIN_TIMEOUT}: 40s
spec:
  slotsPerWorker: 1
  cleanPodPolicy: Running
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
          - name: launcher
            image: horovod/horovod
            command: [horovodrun, -np, "1", --min-np, "1", --max-np, "4", --gloo,
                      --host-discovery-script, {names.DISCOVER_HOSTS_PATH}, python, train.py]
    Worker:
      replicas: {{size}}
      template:
        spec:
          containers:
          - name: worker
            image: horovod/horovod
"""


def editor(size: int) -> str:
    """A KUBE_EDITOR that changes the one number and nothing else."""
    return f"sed -i '/Worker:/,/replicas:/s/replicas: .*/replicas: {size}/'"


@dataclass(frozen=True, kw_only=True)
class Step:
    """A change to one size. title: for tables. text: what happens, for people. verb: the user's kubectl command."""

    size: int
    title: str
    text: str
    verb: Literal["apply", "edit", "scale"] = "edit"

    @property
    def command(self) -> str:
        """The command that a user would type."""
        return {
            "apply": f"kubectl apply -f {NAME}.yaml",
            "edit": f'KUBE_EDITOR="{editor(self.size)}" kubectl edit mpijob {NAME}',
            "scale": f"kubectl scale mpijob/{NAME} --replicas={self.size}",
        }[self.verb]

    def run(self, cluster: Cluster) -> str:
        """Run it; what kubectl says. Raise LabError."""
        where = ("-n", NAMESPACE)
        match self.verb:
            case "apply":
                said = cluster.kubectl(
                    *where, "apply", "-f", "-", stdin=MANIFEST.format(size=self.size)
                )
            case "edit":
                said = cluster.kubectl(*where, "edit", "mpijob", NAME, editor=editor(self.size))
            case "scale":
                said = cluster.kubectl(*where, "scale", f"mpijob/{NAME}", f"--replicas={self.size}")
        return said.strip()


STEPS = (
    Step(
        size=2,
        title="create",
        verb="apply",
        text=(
            "A job of 2 workers. The operator makes ConfigMap, Role, workers and launcher; the webhook gives the "
            "launcher discover_hosts.sh, and the controller names both workers in it once they are Ready."
        ),
    ),
    Step(
        size=3,
        title="2→3",
        text=(
            "The operator makes train-worker-2. The controller lets the launcher exec into it (Role), names it in "
            "discover_hosts.sh once it is Ready, and touches the launcher, so that its file is true at once."
        ),
    ),
    Step(
        size=1,
        title="3→1",
        text=(
            "The operator would leave two workers running for ever. The controller takes them out of "
            "discover_hosts.sh, waits until no rank runs in them any more, and deletes them."
        ),
    ),
    Step(
        size=3,
        title="1→3",
        text="The same two names come back. No rank was killed before, so Horovod has blacklisted none of them.",
    ),
    Step(
        size=2,
        title="3→2",
        verb="scale",
        text=(
            "`mpijob-elastic install` has added the subresource scale to MPIJobs, so they scale as Deployments do, and "
            "a HorizontalPodAutoscaler can do it as well."
        ),
    ),
)
