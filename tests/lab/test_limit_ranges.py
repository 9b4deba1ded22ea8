"""Parked workers beside LimitRanges: an edit is refused exactly where the API server refuses a placeholder."""

import pytest

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import EVENTS, LIMIT_RANGES, MPI_JOBS, PODS
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from tests.lab.job import Job, Object
from tests.lab.launchers import plain_pod, tried
from tests.lab.test_parking import SOON, asking, gates, refusal, trains
from tests.lab.waiting import seen

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("elastic", "operator")]

DEFAULTS = {
    "type": "Container",
    "default": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"},
    "defaultRequest": {"cpu": "100m"},
    "max": {"cpu": "4"},
}
# Each with what the API server says of a placeholder; every other takes one, so that a change is
# seen.
LIMITS: list[tuple[Object, str]] = [
    (
        {"type": "Pod", "min": {"ephemeral-storage": "1Mi"}},
        "minimum ephemeral-storage usage per Pod is 1Mi",
    ),
    (DEFAULTS, ""),
    (
        {"type": "Pod", "min": {"memory": "1Mi"}},
        "minimum memory usage per Pod is 1Mi, but request is 0",
    ),
    ({"type": "Container", "min": {"cpu": "0"}}, ""),
    (
        {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
        "no request is specified or request is 0",
    ),
    ({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}}, ""),
    # No worker names it, and the API server fills it in.
    (
        {"type": "Container", "min": {"ephemeral-storage": "1Mi"}},
        "minimum ephemeral-storage usage per Container is",
    ),
    ({"type": "Pod", "max": {"cpu": "4"}}, ""),
    (
        {"type": "Container", "min": {"cpu": "10m"}},
        "minimum cpu usage per Container is 10m, but request is 0",
    ),
]


async def limit(client: ApiWriter, namespace: str, limits: Object) -> None:
    """Have the namespace's LimitRange say this."""
    body = {"metadata": {"name": "team"}, "spec": {"limits": [limits]}}
    try:
        await client.create_object(LIMIT_RANGES.path(namespace), body=body)
    except errors.AlreadyExists:
        path = LIMIT_RANGES.path(namespace, "team")
        await client.patch_object(path, body={"spec": body["spec"]}, content_type=MERGE_PATCH)


@pytest.mark.thorough
async def test_parking_is_refused_exactly_where_a_placeholder_is(
    job: Job, client: ApiWriter
) -> None:
    await job.create(
        replicas=4,
        annotations={**SOON, "mpijob-elastic/parked": "1,9"},
        worker_spec={"containers": [asking("worker", "1")]},
    )
    state = await job.until(trains(job, 0, 2, 3, parked=(1,)), "its start")
    worker = state.workers["train-worker-2"]
    metadata = {key: worker["metadata"][key] for key in ("labels", "ownerReferences")} | {
        "name": "train-worker-9"
    }
    spec = {"containers": [asking("worker", "1")]}
    parking = {"metadata": {"annotations": {"mpijob-elastic/parked": "1,2,9"}}}

    async def said() -> tuple[str, str]:
        made = await refusal(
            tried(client, PODS, job.namespace, {"metadata": metadata, "spec": spec})
        )
        path = MPI_JOBS.path(job.namespace, job.name)
        edited = client.patch_object(
            path, body=parking, content_type=MERGE_PATCH, query={"dryRun": "All"}
        )
        return made, await refusal(edited)

    for limits, why in LIMITS:
        await limit(client, job.namespace, limits)
        both = (bool(why), bool(why))
        of_pod, of_edit = await seen(
            said,
            lambda found: (bool(found[0]), bool(found[1])) == both,  # noqa: B023
            f"{limits} at work",
        )
        assert why in of_pod
        assert ("LimitRange team sets " in of_edit) is bool(why), of_edit

    async def told() -> str:
        return (await client.get(EVENTS.path(job.namespace))).decode()

    await client.delete_object(PODS.path(job.namespace, "train-worker-1"))
    await seen(
        told,
        lambda text: LIMITS[-1][1] in text,
        "an operator that cannot make the placeholder again",
    )
    await job.told("WorkersRefused", "the operator has not created train-worker-1")
    await job.annotate(parked=None)
    await job.settled(4)


async def test_beside_defaults_a_worker_is_parked(job: Job, client: ApiWriter) -> None:
    await limit(client, job.namespace, DEFAULTS)

    async def defaults() -> Object:
        [container] = (await tried(client, PODS, job.namespace, plain_pod(0)))["spec"]["containers"]
        found: Object = container["resources"]
        return found

    await seen(defaults, bool, "a pod with defaults")
    await job.create(replicas=3, annotations={**SOON, "mpijob-elastic/parked": "1"})
    state = await job.until(trains(job, 0, 2, parked=(1,)), "its start")
    zeros = dict.fromkeys(DEFAULTS["default"], "0")
    [container] = state.workers["train-worker-1"]["spec"]["containers"]
    assert container["resources"] == {"requests": zeros, "limits": zeros}
    assert gates(state, "train-worker-0") == []
