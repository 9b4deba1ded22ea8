"""2→3→1→3→4→2 by `kubectl edit` and `kubectl scale`, with real Elastic Horovod; asserted from the job's own log."""

import pytest

from lab.cluster import Cluster
from lab.operator.process import Operator
from lab.replicas import Controller
from lab.training.job import TrainingJob
from tests.real.resizes import train_through


@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("scale_served")
def test_training_goes_on_through_every_change_of_size(
    cluster: Cluster, namespace: str, training_image: None, operator: Operator, elastic: Controller
) -> None:
    job = TrainingJob(cluster=cluster, namespace=namespace)
    changes = ((job.edit, 3), (job.scale, 1), (job.edit, 3), (job.scale, 4), (job.edit, 2))
    train_through(job, *changes, steps=400)
