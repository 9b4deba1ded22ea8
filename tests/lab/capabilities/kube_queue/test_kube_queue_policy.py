"""The controller makes QueueUnits of jobs, grants nothing, and holds a job without ever freeing it."""

import pytest

from lab.cluster import Cluster
from lab.operator.objects import Object
from mpijob_elastic.capabilities.kube_queue.facts import (
    KUBEQUEUE_SUSPEND,
    QUEUE_UNITS,
    UNIT_WORKERS,
    queue_unit_name,
)
from mpijob_elastic.kube.resources import MPI_JOBS
from tests.lab.capabilities.kube_queue.kube_queue import served
from tests.lab.policies import (
    JOB,
    UNOWNED,
    WORKER,
    Accounts,
    added,
    annotations,
    by_administrator,
    created,
    deleted,
    owned,
    patched,
    typed,
)
from tests.lab.versions import needs

pytestmark = [pytest.mark.lab, needs("ValidatingAdmissionPolicy")]


def held(value: str | None) -> Object:
    return annotations({KUBEQUEUE_SUSPEND: value})


UNIT_NAME = queue_unit_name(JOB)
CONSUMER: Object = {"spec": {"consumerRef": {**typed(MPI_JOBS), "name": JOB}}}
OF_A_POD = {"apiVersion": "v1", "kind": "Pod", "name": WORKER, "uid": "u"}
UNIT: Object = {**CONSUMER, **owned(UNIT_NAME, annotations={UNIT_WORKERS: "2"})}


@pytest.mark.thorough
@pytest.mark.parametrize("part", ["status", None], ids=["a status of its own", "no subresource"])
async def test_queue_units_only_of_the_job_that_controls_them_and_never_a_grant(
    cluster: Cluster, accounts: Accounts, part: str | None
) -> None:
    of_others = {"spec": {"consumerRef": CONSUMER["spec"]["consumerRef"] | {"name": "other"}}}
    granted: list[Object] = [] if part else [UNIT | {"status": {"phase": "Dequeued"}}]
    phases = [{"status": {"phase": phase}} for phase in ("Dequeued", "Succeed", "")]
    with served(cluster, subresource=bool(part)):
        await accounts.expect(
            "mpijob-elastic-queue-units",
            *created(
                False, QUEUE_UNITS, UNIT | owned("other"), UNIT | {"metadata": {"name": UNIT_NAME}}
            ),
            *created(False, QUEUE_UNITS, UNIT | of_others, *granted),
            *created(True, QUEUE_UNITS, UNIT | {"status": {"phase": "Enqueued"}}),
            *patched(False, QUEUE_UNITS, UNIT_NAME, *phases, part=part),
            *patched(True, QUEUE_UNITS, UNIT_NAME, {"status": {"phase": "Running"}}, part=part),
            *patched(False, QUEUE_UNITS, UNIT_NAME, {"spec": {"resource": {"cpu": "0"}}}, UNOWNED),
            *patched(False, QUEUE_UNITS, UNIT_NAME, annotations({UNIT_WORKERS: "1"})),
            *patched(
                True, QUEUE_UNITS, UNIT_NAME, [added("/metadata/ownerReferences/-", OF_A_POD)]
            ),
            *patched(
                False,
                QUEUE_UNITS,
                UNIT_NAME,
                [added("/metadata/ownerReferences/-", OF_A_POD | {"kind": "Job"})],
            ),
            *created(
                True, QUEUE_UNITS, UNIT | {"metadata": {"name": "of-a-user"}}, by="administrator"
            ),
            deleted(False, QUEUE_UNITS, "of-a-user"),
            deleted(True, QUEUE_UNITS, UNIT_NAME),
        )


async def test_a_job_is_held_and_never_freed(accounts: Accounts) -> None:
    for before in ("true", "false", None):
        await accounts.expect(
            "mpijob-elastic-mpijobs",
            by_administrator(held(before)),
            *patched(True, MPI_JOBS, JOB, held("true")),
            *patched(False, MPI_JOBS, JOB, held("false")),
            *patched(True, MPI_JOBS, JOB, held(None)),
        )
