"""KubeQueue at admission: whether a new MPIJob belongs to one of its queues; pure."""

from mpijob_elastic.admission.interface import CapabilityAdmission
from mpijob_elastic.capabilities.kube_queue.facts import KUBEQUEUE_QUEUES, KUBEQUEUE_SUSPEND
from mpijob_elastic.model.mpijob import MPIJob


class KubeQueueAdmission(CapabilityAdmission):
    """What the webhook does for a job of KubeQueue."""

    def names_queue(self, job: MPIJob) -> bool:
        """Tell whether KubeQueue holds the job, or the job names a queue of KubeQueue."""
        said = job.metadata.annotations
        is_held = said.get(KUBEQUEUE_SUSPEND) == "true"
        return is_held or any(said.get(key) for key in KUBEQUEUE_QUEUES)
