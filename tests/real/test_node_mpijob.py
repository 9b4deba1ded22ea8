"""A MPIJob of real pods, through the operator's own kubexec.sh, with controller and webhook beside the cluster."""

from lab.cluster import Cluster
from lab.operator.process import Operator
from lab.replicas import Controller
from tests.real.mpijob import resize_through


def test_a_launcher_runs_commands_in_the_workers_it_is_told_of(
    cluster: Cluster, namespace: str, operator: Operator, elastic: Controller
) -> None:
    resize_through(cluster, namespace)
