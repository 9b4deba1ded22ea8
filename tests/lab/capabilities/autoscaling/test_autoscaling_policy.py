"""The controller makes the HPA of a job that controls it, and sets sizes of jobs that ask for it."""

import pytest

from lab.operator.objects import Object
from mpijob_elastic import names
from mpijob_elastic.capabilities.autoscaling.autoscaler import autoscaler_name
from mpijob_elastic.capabilities.autoscaling.facts import AUTOSCALE, AUTOSCALERS, SCALE_TIMEOUT
from mpijob_elastic.kube.resources import MPI_JOBS
from tests.lab.policies import (
    HELD,
    JOB,
    UNOWNED,
    Accounts,
    Sent,
    annotations,
    by_administrator,
    created,
    deleted,
    owned,
    patched,
    size,
    typed,
)
from tests.lab.versions import needs

pytestmark = [pytest.mark.lab, needs("ValidatingAdmissionPolicy")]
HPA, MANAGED = autoscaler_name(JOB), {names.LABEL_MANAGED_BY: names.PROGRAM}
TARGET, DEPLOYMENT = (
    {**typed(MPI_JOBS), "name": JOB},
    {"apiVersion": "apps/v1", "kind": "Deployment", "name": JOB},
)


def scaling(target: Object, metadata: Object) -> Object:
    return {"spec": {"scaleTargetRef": target, "maxReplicas": 3}, **metadata}


AUTOSCALERS_SENT = [
    *created(False, AUTOSCALERS, scaling(DEPLOYMENT, owned(HPA, labels=MANAGED))),
    *created(False, AUTOSCALERS, scaling(TARGET | {"name": "other"}, owned(HPA, labels=MANAGED))),
    *created(False, AUTOSCALERS, scaling(TARGET, owned(HPA, labels={}))),
    *created(False, AUTOSCALERS, scaling(TARGET, {"metadata": {"name": HPA, "labels": MANAGED}})),
    *created(True, AUTOSCALERS, scaling(TARGET, owned(HPA, labels=MANAGED))),
    *patched(True, AUTOSCALERS, HPA, {"spec": {"maxReplicas": 4}}),
    *patched(False, AUTOSCALERS, HPA, {"spec": {"scaleTargetRef": DEPLOYMENT}}, UNOWNED, HELD),
    *patched(False, AUTOSCALERS, HPA, {"metadata": {"labels": {names.LABEL_MANAGED_BY: None}}}),
    *created(
        True, AUTOSCALERS, scaling(TARGET, {"metadata": {"name": "of-a-user"}}), by="administrator"
    ),
    deleted(False, AUTOSCALERS, "of-a-user"),
    deleted(True, AUTOSCALERS, HPA),
]


def sizes(*allowed: int, of: Object) -> list[Sent]:
    """Whether the controller may set these sizes once the job says this."""
    tried = [
        (by_administrator(size(5)), *patched(replicas in allowed, MPI_JOBS, JOB, size(replicas)))
        for replicas in (1, 2, 4, 6, 7)
    ]
    return [by_administrator(of), *(sent for pair in tried for sent in pair)]


SIZES_SENT = [
    *sizes(of={}),
    *sizes(1, 2, 4, of=annotations({SCALE_TIMEOUT: "60s"})),
    *sizes(
        2,
        4,
        6,
        of=annotations({AUTOSCALE: "fill", names.MIN_REPLICAS: "2", names.MAX_REPLICAS: "6"}),
    ),
    *sizes(2, 4, 6, of=annotations({AUTOSCALE: "fill,worth=0.3"})),
    *patched(False, MPI_JOBS, JOB, {"spec": size(4)["spec"] | {"slotsPerWorker": 2}}),
    *sizes(of=annotations({names.MAX_REPLICAS: "many"})),
    *sizes(of=annotations({AUTOSCALE: "cpu=70", names.MAX_REPLICAS: "6", SCALE_TIMEOUT: None})),
]


@pytest.mark.parametrize(
    ("policy", "requests"),
    [
        pytest.param(
            "mpijob-elastic-autoscalers", AUTOSCALERS_SENT, id="HPAs of the job that controls them"
        ),
        pytest.param("mpijob-elastic-mpijobs", SIZES_SENT, id="sizes of jobs that ask for it"),
    ],
)
async def test_only_what_we_write_goes_through(
    accounts: Accounts, policy: str, requests: list[Sent]
) -> None:
    await accounts.expect(policy, *requests)
