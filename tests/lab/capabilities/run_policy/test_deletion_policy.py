"""The controller deletes MPIJobs that have finished and ask for it."""

import msgspec
import pytest

from lab.operator.objects import Object
from mpijob_elastic.capabilities.run_policy import RUN_POLICY
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import MPI_JOBS
from tests.lab.policies import JOB, Accounts, Sent, annotations, by_administrator
from tests.lab.versions import needs

pytestmark = [pytest.mark.lab, needs("ValidatingAdmissionPolicy")]
SURE = ("uid", "resource_version")
LATE: Object = {"spec": {"runPolicy": {"ttlSecondsAfterFinished": 0}}}
ASKS = {**annotations({RUN_POLICY: "true"}), **LATE}


def ended(condition: str, reason: str = "", completed: str | None = "2026-01-01T00:00:00Z") -> Sent:
    conditions = [{"type": condition, "status": "True", "reason": reason}]
    return by_administrator(
        {"status": {"conditions": conditions, "completionTime": completed}}, "status"
    )


async def test_mpijobs_only_finished_ones_that_ask_for_it_are_deleted(accounts: Accounts) -> None:
    policy, path = "mpijob-elastic-mpijob-deletions", MPI_JOBS.path(accounts.namespace, JOB)

    async def delete(*preconditions: str) -> None:
        controller = accounts.clients["controller"]
        metadata = msgspec.json.decode(await controller.get(path))["metadata"]
        keep = {"resource_version": metadata["resourceVersion"], "uid": metadata["uid"]}
        await controller.delete_object(path, **{key: keep[key] for key in preconditions})

    async def refuses(*changes: Sent, preconditions: tuple[str, ...] = SURE) -> None:
        await accounts.expect("none", *changes)
        with pytest.raises(
            errors.Forbidden, match=f"ValidatingAdmissionPolicy '{policy}' with binding"
        ):
            await delete(*preconditions)

    await refuses()
    await refuses(by_administrator(ASKS), ended("Running"))
    await refuses(ended("Failed", "MPIJobEvicted"))
    await refuses(ended("Failed", "MPIJobFailed", None))
    for spoiled in (
        *(annotations({RUN_POLICY: said}) for said in (None, "false")),
        {"spec": {"runPolicy": None}},
    ):
        await refuses(
            ended("Failed", "MPIJobFailed"), by_administrator(ASKS), by_administrator(spoiled)
        )
    for preconditions in ((), ("uid",), ("resource_version",)):
        await refuses(by_administrator(ASKS), preconditions=preconditions)
    await delete(*SURE)
