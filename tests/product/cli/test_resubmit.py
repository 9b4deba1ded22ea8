"""`resubmit`: which job it makes of a finished one, under which name."""

from collections.abc import AsyncIterator, Collection
from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs.creation import Creation
from mpijob_elastic.cli.jobs.resubmission import copied, next_name, resubmit
from mpijob_elastic.cli.jobs.snapshot import NoSuchJob
from mpijob_elastic.cli.target import Where
from mpijob_elastic.install import Refused
from mpijob_elastic.kube.resources import LEASES, MPI_JOBS
from tests.doubles.api import TinyApi
from tests.product.cli.served import NAMESPACE, put_job
from tests.product.cli.test_write_change import at_work_lease

OVER: dict[str, Any] = {"phase": "Succeeded", "conditions": ("Created", "Succeeded")}


@pytest.mark.parametrize(
    ("job", "taken", "name"),
    [
        ("train", (), "train-2"),
        ("train", ("train", "train-2", "train-3", "train-5"), "train-4"),
        ("train-2", ("train", "train-2"), "train-3"),
        ("train-v1", (), "train-v1-2"),
        ("train-0", (), "train-0-2"),
        ("a-9", ("a-10",), "a-11"),
        ("7", (), "7-2"),
    ],
)
def test_the_name_has_the_next_number(job: str, taken: Collection[str], name: str) -> None:
    assert next_name(job, taken) == name


def test_what_the_user_wrote_is_copied_and_what_became_of_it_is_not() -> None:
    spec = {"mpiReplicaSpecs": {"Worker": {"replicas": 0, "template": {}}, "Launcher": {}}}
    annotations = {
        names.MAX_REPLICAS: "4",
        names.PARKED: "1",
        names.SUSPEND: "true",
        names.STATUS: "Failed",
        names.PHASE: "",
        names.CHANGE: "x",
        "scheduling.x-k8s.io/suspend": "false",
        "meta.helm.sh/release-name": "train",
        "argocd.argoproj.io/tracking-id": "a:b",
        names.SCALED_BY: "uid",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "team": "vision",
    }
    old = {
        "metadata": {
            "name": "train",
            "namespace": "ml",
            "uid": "u",
            "resourceVersion": "7",
            "ownerReferences": [{}],
            "finalizers": ["x"],
            "labels": {
                "a": "b",
                "app.kubernetes.io/managed-by": "Helm",
                "app.kubernetes.io/instance": "x",
            },
            "annotations": annotations,
        },
        "spec": spec,
        "status": {"conditions": []},
    }
    kept = {
        names.MAX_REPLICAS: "4",
        "team": "vision",
        "scheduling.x-k8s.io/suspend": "true",
    }
    assert copied(old, "again") == {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "metadata": {"name": "again", "labels": {"a": "b"}, "annotations": kept},
        "spec": spec,
    }
    assert copied(old, "again", size=3)["spec"]["mpiReplicaSpecs"] == {
        "Worker": {"replicas": 3, "template": {}},
        "Launcher": {},
    }
    assert spec["mpiReplicaSpecs"]["Worker"]["replicas"] == 0
    assert copied({"metadata": {}, "spec": {}}, "again")["metadata"] == {"name": "again"}
    suspended = {"metadata": {}, "spec": {"runPolicy": {"suspend": True, "backoffLimit": 1}}}
    assert copied(suspended, "again")["spec"] == {"runPolicy": {"backoffLimit": 1}}


@pytest.fixture
async def api() -> AsyncIterator[TinyApi]:
    """A job that has ended, and one that trains."""
    async with TinyApi(selects=True) as found:
        found.put(LEASES.path(names.NAMESPACE, names.LEASE), at_work_lease())
        put_job(found, "over", size=3, **OVER)
        put_job(found, "trains")
        yield found


async def again(api: TinyApi, job: str, name: str = "", **asked: Any) -> Exit:
    where = Where(kubeconfig=api.kubeconfig, namespace=NAMESPACE)
    return await resubmit(where, job, name=name, asked=Creation(**asked))


async def test_a_job_that_has_ended_is_created_again_beside_itself(
    api: TinyApi, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("over-2", "over-3"):
        assert await again(api, "over", output="name") == Exit.DONE
        made = api.objects[MPI_JOBS.path(NAMESPACE, name)]
        assert made["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 3
        assert "status" not in made
    out, _ = capsys.readouterr()
    assert out.splitlines() == ["mpijob.kubeflow.org/over-2", "mpijob.kubeflow.org/over-3"]
    assert await again(api, "over", "other", dry_run="client") == Exit.DONE
    assert MPI_JOBS.path(NAMESPACE, "other") not in api.objects
    out = capsys.readouterr().out
    assert "\n  name: other\n" in out
    assert "\n  namespace: ml\n" in out


@pytest.mark.parametrize(
    ("parked", "size"), [("0", 2), ("0,2", 1), ("7", 3), ("x", 3), ("0,1,2", 3)]
)
async def test_a_copy_has_as_many_workers_and_none_is_parked(
    api: TinyApi, parked: str, size: int
) -> None:
    """The numbers of parked workers mean the workers of the other job."""
    put_job(api, "parks", size=3, annotations={names.PARKED: parked, "a": "b"}, **OVER)
    assert await again(api, "parks") == Exit.DONE
    made = api.objects[MPI_JOBS.path(NAMESPACE, "parks-2")]
    assert made["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == size
    assert names.PARKED not in made["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("job", "name", "error", "words"),
    [
        ("trains", "", Refused, r"trains has not ended \(Running\); `kubectl get mpijob trains"),
        (
            "over",
            "trains",
            Refused,
            "there is an MPIJob ml/trains: `mpijob-elastic watch trains -n ml`",
        ),
        ("over", "No", Refused, "choose another by --name"),
        ("over", "a" * 64, Refused, "choose another by --name"),
        ("none", "", NoSuchJob, "no MPIJob none"),
    ],
)
async def test_what_cannot_be_created_again_is_refused(
    api: TinyApi, job: str, name: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        await again(api, job, name)
    assert api.writes == []
