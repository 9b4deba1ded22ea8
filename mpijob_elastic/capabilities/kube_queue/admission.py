"""KubeQueue at admission: a job that another queue has is held for ever."""

from collections.abc import Iterator

from mpijob_elastic.capabilities.kube_queue.facts import KUBEQUEUE_SUSPEND, Held
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.mpijob import MPIJob
from webhook.rules.optional import Admission


class KubeQueueAdmission(Admission):
    """What the webhook says of it."""

    def findings(self, _job: MPIJob, about: JobFacts) -> Iterator[str]:
        """Yield that the job gets no QueueUnit."""
        if about.of(Held) and about.elastic and any(known.rations for known in about.asked):
            yield f"{KUBEQUEUE_SUSPEND} holds a job with a queue of Kueue for ever: it gets no QueueUnit"
