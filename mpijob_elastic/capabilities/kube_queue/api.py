"""The names of KubeQueue (https://github.com/kube-queue/kube-queue) and of koord-queue, and their kind in the API."""

from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.names import PREFIX

# On an MPIJob, written by users and by KubeQueue: holds new pods back.
KUBEQUEUE_SUSPEND = "scheduling.x-k8s.io/suspend"
# On an MPIJob, written by users, and on its QueueUnit, where koord-queue reads them: its queue, and its quota in the
# tree (koordinator-sh/koord-queue: pkg/framework/plugins/elasticquota).
KUBEQUEUE_ANNOTATIONS = ("kube-queue/", "koord-queue/")
KUBEQUEUE_QUEUES = ("koord-queue/queue-name", "kube-queue/queue-name")
KUBEQUEUE_LABELS = "quota.scheduling."
# On a QueueUnit, written by the controller: for how many workers it asks.
UNIT_WORKERS = f"{PREFIX}workers"

QUEUE_UNITS = Resource(group="scheduling.x-k8s.io", version="v1alpha1", plural="queueunits", kind="QueueUnit")


def queue_unit_name(job: str) -> str:
    """Return the name of a job's QueueUnit: as koord-queue's extension for older MPIJobs names it."""
    return f"{job}-mpi-qu"
