"""A namespace that enforces the Pod Security Standard `restricted`: jobs whose templates satisfy it run there.

mpi-operator v0.2.3 drops seccompProfile, and its init container kubectl-delivery has no security
context.
"""

import pytest

from lab.cluster import Cluster
from tests.lab.job import HOROVODRUN, MPIRUN, Job, Object

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("operator", "elastic")]
ENFORCES = "pod-security.kubernetes.io/enforce=restricted"
POD: Object = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
CONTAINER: Object = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def restricted(name: str, **container: object) -> Object:
    """The pod spec of a template that satisfies the standard."""
    main = {"name": name, "image": "horovod:test", "securityContext": CONTAINER, **container}
    return {"securityContext": POD, "containers": [main]}


@pytest.fixture
def namespace(cluster: Cluster, namespace: str) -> str:
    cluster.kubectl("label", "namespace", namespace, ENFORCES)
    return namespace


@pytest.mark.parametrize("command", [HOROVODRUN, MPIRUN], ids=["elastic", "plain"])
async def test_a_job_whose_templates_are_restricted_runs(job: Job, command: list[str]) -> None:
    await job.create(
        replicas=2,
        launcher_spec=restricted("launcher", command=command),
        worker_spec=restricted("worker"),
    )
    state = await job.until(
        lambda state: state.launcher_runs and len(state.running) == 2, "its pods"
    )
    assert state.launcher is not None
    for pod in (state.launcher, *state.workers.values()):
        assert pod["spec"]["securityContext"] == POD
    [delivery] = state.launcher["spec"]["initContainers"]
    assert delivery["securityContext"] == {**CONTAINER, **POD, "runAsUser": 65534}
    if command == HOROVODRUN:
        await job.scale(3)
        await job.settled(3)
