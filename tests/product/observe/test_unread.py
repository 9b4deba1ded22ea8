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
from mpijob_elastic.observe.kept import Unread
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
