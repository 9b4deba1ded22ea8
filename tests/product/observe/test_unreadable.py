"""Objects of a job that exist and cannot be read are known to it, whatever their kind, until they can."""

from typing import Any

import msgspec
import pytest

from mpijob_elastic import names
from mpijob_elastic.kube import meta
from mpijob_elastic.kube.meta import OwnedIdentity, OwnerReference
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS, ROLES, Resource
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model import bounds
from mpijob_elastic.observe.unreadable import Unread
from mpijob_elastic.observe.watching import JobKey
from tests.doubles.api import TinyApi
from tests.faults.waiting import eventually
from tests.product.observe.cached import job_of, running, view_of

MANY = {str(number): "" for number in range(meta.MOST_VALUES + 1)}
LONG = {names.DEFAULT_CONTAINER: "x" * bounds.LARGEST_POD}


def metadata(*, uid: str = "job", **more: Any) -> dict[str, Any]:
    owner = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "name": "train",
        "uid": uid,
        "controller": True,
    }
    labels = {names.LABEL_APP: "train", names.LABEL_JOB_ROLE: names.ROLE_WORKER}
    return {"namespace": "n", "uid": "u", "labels": labels, "ownerReferences": [owner], **more}


@pytest.mark.parametrize(
    ("resource", "name", "hostile", "why"),
    [
        (PODS, "train-worker-0", {"labels": MANY}, "more than 15,000 fields"),
        (PODS, "train-worker-0", {"annotations": LONG}, "more than 8,192 bytes"),
        (CONFIG_MAPS, "train-config", {"annotations": MANY}, "more than 15,000 fields"),
        (ROLES, "train-launcher", {"annotations": MANY}, "more than 15,000 fields"),
    ],
)
async def test_a_job_knows_its_objects_that_cannot_be_read(
    api: TinyApi,
    client: ApiWriter,
    resource: Resource,
    name: str,
    hostile: dict[str, Any],
    why: str,
) -> None:
    api.objects[MPI_JOBS.path(name="train")] = msgspec.json.decode(job_of("train"))
    path = resource.path("n", name)
    api.objects[path] = {
        "metadata": metadata(name=name, **hostile),
        "spec": {"containers": [{}, {}]},
    }
    async with running(client) as caches:
        [(what, said)] = view_of(caches).unread.items()
        assert (what, why in said) == (f"{resource.kind} {name}", True)
        await api.update(
            resource.path("n"), name, metadata=metadata(name=name, uid="another job", **hostile)
        )
        await eventually(lambda: not view_of(caches).unread)
        await api.update(resource.path("n"), name, metadata=metadata(name=name, **hostile))
        await eventually(lambda: what in view_of(caches).unread)
        await api.delete(resource.path("n"), name)
        await eventually(lambda: not view_of(caches).unread)


def identity(*, owner: str, version: str = "1") -> OwnedIdentity:
    reference = OwnerReference(
        api_version="kubeflow.org/v1",
        kind="MPIJob",
        name=owner,
        uid=f"uid-of-{owner[:9]}",
        controller=True,
    )
    return OwnedIdentity(
        namespace="n", name="p", uid="u", resource_version=version, owner_references=(reference,)
    )


def test_each_job_that_is_concerned_is_woken() -> None:
    woken: list[JobKey] = []
    unread, a, b = Unread(woken.append), JobKey("n", "a"), JobKey("n", "b")
    unread.put(PODS, identity(owner="a"), "x" * 1_000)
    assert unread.of(a, uid="uid-of-a") == {"Pod p": "x" * 200}
    assert unread.of(a, uid="uid of another") == {}
    unread.put(PODS, identity(owner="b"), "y")
    assert (unread.of(a, uid="uid-of-a"), unread.of(b, uid="uid-of-b")) == ({}, {"Pod p": "y"})
    unread.put(PODS, identity(owner="b"), "")
    assert unread.of(b, uid="uid-of-b") == {}
    assert woken == [a, a, b, b]


def test_of_an_owner_whose_name_no_object_can_have_nothing_is_kept() -> None:
    assert identity(owner="x" * 253).shortened().controller is not None
    assert identity(owner="x" * 254).shortened().controller is None


GATED = {"schedulingGates": [{"name": "x"}]}


@pytest.mark.parametrize(
    ("content", "idle", "deleting"),
    [
        pytest.param({"status": {"phase": "Running"}}, False, False, id="it runs"),
        pytest.param({}, False, False, id="it says nothing"),
        pytest.param({"status": {"phase": "Failed"}}, True, False, id="it has ended"),
        pytest.param({"spec": GATED}, True, False, id="it waits at a gate"),
        pytest.param({"spec": {"schedulingGates": []}}, False, False, id="no gate is left"),
        pytest.param({"spec": {"schedulingGates": None}}, False, False, id="no gates"),
        pytest.param(
            {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, False, True, id="it goes"
        ),
        pytest.param({"status": {"phase": 7}}, False, False, id="it is of other types"),
    ],
)
async def test_of_a_pod_that_cannot_be_read_it_is_known_whether_it_runs(
    api: TinyApi, client: ApiWriter, content: dict[str, Any], idle: bool, deleting: bool
) -> None:
    """Where that cannot be read either, it runs."""
    api.objects[MPI_JOBS.path(name="train")] = msgspec.json.decode(job_of("train"))
    name, born = "train-worker-0", {"creationTimestamp": "2026-01-01T00:00:00Z"}
    more = {**born, **content.pop("metadata", {}), "annotations": MANY}
    api.objects[PODS.path("n", name)] = {"metadata": metadata(name=name, **more), **content}
    async with running(client) as caches:
        [(seen, pod)] = view_of(caches).hidden.items()
        assert (seen, pod.idle, pod.deleting) == (name, idle, deleting)
        assert (pod.metadata.uid, pod.metadata.job_uid) == ("u", "job")
        assert pod.created_at == (0.0 if content.get("status") == {"phase": 7} else 1767225600.0)
        await api.delete(PODS.path("n"), name)
        await eventually(lambda: not view_of(caches).hidden)
