"""`top` in a cluster with metrics-server and GPUs, and without."""

from collections.abc import AsyncIterator, Collection
from typing import Any

import pytest

from mpijob_elastic.cli.jobs import top
from mpijob_elastic.cli.jobs.pods import NotStarted
from mpijob_elastic.cli.jobs.snapshot import NoSuchJob
from mpijob_elastic.cli.jobs.top import NoMetrics, SortBy
from mpijob_elastic.cli.target import Where
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import MPI_JOBS, PODS
from tests.doubles.api import TinyApi, refused
from tests.doubles.direct import Sent
from tests.doubles.shells import Asked, Message, Shells, by_place
from tests.product.cli import worlds

SMI = {"train-worker-0": "10, 100\n30, 200", "train-worker-1": "90, 40"}


def used(name: str, *usage: tuple[str, str]) -> worlds.Object:
    containers = [{"name": "c", "usage": {"cpu": cpu, "memory": memory}} for cpu, memory in usage]
    return {"metadata": {"name": name, "namespace": "default"}, "containers": containers}


class Cluster:
    """A job with a launcher and three workers, of which the last is not measured yet."""

    def __init__(self, api: TinyApi, capsys: pytest.CaptureFixture[str]) -> None:
        self.api, self._capsys = api, capsys
        self.served: Collection[str] = ("v1beta1",)
        self.asked: list[str] = []
        self.shells = Shells(by_place(SMI, "sh: nvidia-smi: not found"))
        self.metrics: list[worlds.Object] | errors.ApiError = [
            used("train-launcher", ("1500u", "700Ki")),
            used("train-worker-0", ("250m", "1Gi"), ("1", "512Mi")),
            used("train-worker-1", ("2", "100M")),
        ]
        pods = [worlds.launcher(), *map(worlds.worker, range(3)), worlds.worker(3, phase="Pending")]
        api.put(MPI_JOBS.path("default", "train"), worlds.mpi_job())
        for pod in pods:
            api.put(PODS.path("default", pod["metadata"]["name"]), pod)
        api.hook, api.streams["/exec"] = self._hook, self.shells.serve

    def _hook(self, sent: Sent) -> Any:
        group, _, rest = sent.path.partition("/apis/metrics.k8s.io/")
        if group or not rest:
            return None
        version, _, pods = rest.partition("/")
        if not pods:
            if version not in self.served:
                raise refused(404, "", "404 page not found")
            return {"resources": []}
        self.asked.append(version)
        if version not in self.served and not isinstance(self.metrics, errors.ApiError):
            raise refused(404, "", "404 page not found")
        if isinstance(self.metrics, errors.ApiError):
            raise self.metrics
        return {"metadata": {}, "items": self.metrics}

    async def top(
        self, job: str = "train", sort_by: SortBy | None = None, *, headers: bool = True
    ) -> list[str]:
        """Return the lines that it prints."""
        where = Where(kubeconfig=self.api.kubeconfig, namespace="default")
        await top.top(where, job=job, sort_by=sort_by, headers=headers)
        return self._capsys.readouterr().out.splitlines()

    async def top_jobs(self, sort_by: SortBy | None = None, **options: Any) -> list[str]:
        """Return the lines that it prints of all jobs."""
        where = Where(kubeconfig=self.api.kubeconfig, namespace="default", **options)
        await top.top_jobs(where, labels="", sort_by=sort_by, headers=True)
        return self._capsys.readouterr().out.splitlines()

    def add_other(self) -> None:
        """Add a job with a launcher alone, and one without a pod."""
        for name in ("other", "none"):
            self.api.put(MPI_JOBS.path("default", name), worlds.mpi_job(name=name))
        pod = worlds.launcher(job="other")
        self.api.put(PODS.path("default", pod["metadata"]["name"]), pod)
        assert isinstance(self.metrics, list)
        self.metrics.append(used("other-launcher", ("7", "1Mi")))


@pytest.fixture
async def cluster(api: TinyApi, capsys: pytest.CaptureFixture[str]) -> Cluster:
    return Cluster(api, capsys)


async def test_each_running_pod_is_a_row(cluster: Cluster) -> None:
    assert await cluster.top() == [
        "NAME             NODE     CPU(cores)   MEMORY(bytes)   GPUS   GPU(%)   GPU-MEMORY",
        "train-launcher   node-0   2m           0Mi             -      -        -",
        "train-worker-0   node-0   1250m        1536Mi          2      20       300Mi",
        "train-worker-1   node-1   2000m        95Mi            1      90       40Mi",
        "train-worker-2   node-2   -            -               -      -        -",
    ]


@pytest.mark.parametrize(("by", "worker"), [("cpu", 1), ("memory", 0), ("gpu", 1)])
async def test_what_uses_most_comes_first(cluster: Cluster, by: SortBy, worker: int) -> None:
    rows = await cluster.top(sort_by=by, headers=False)
    assert len(rows) == 4
    assert rows[0].startswith(f"train-worker-{worker} ")


async def test_without_the_right_to_exec_there_are_no_gpus(cluster: Cluster) -> None:
    cluster.shells.says = by_place(dict.fromkeys(SMI), "")
    assert (await cluster.top())[0] == "NAME             NODE     CPU(cores)   MEMORY(bytes)"


async def refuses(_: Asked) -> AsyncIterator[Message]:
    lacks = 'User "u" cannot get resource "pods/exec" in API group "" in the namespace "default"'
    raise refused(403, "Forbidden", f'pods "train-worker-0" is forbidden: {lacks}')
    yield


@pytest.mark.parametrize("gpus", [0, 1])
async def test_a_right_that_is_missing_is_said_once_where_a_job_has_gpus(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], gpus: int
) -> None:
    cluster.shells.says = refuses
    cluster.api.put(MPI_JOBS.path("default", "train"), worlds.mpi_job(gpus=gpus))
    where = Where(kubeconfig=cluster.api.kubeconfig, namespace="default")
    await top.top(where, job="train", sort_by=None, headers=True)
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0] == "NAME             NODE     CPU(cores)   MEMORY(bytes)"
    said = "Warning: GPUs are not shown: your account may not get pods/exec in namespace default"
    assert printed.err.count(said) == len(printed.err.splitlines()) == gpus


@pytest.mark.parametrize(
    ("served", "asked"),
    [
        pytest.param(("v1", "v1beta1"), ["v1"], id="v1 is asked first"),
        pytest.param(("v1",), ["v1"], id="only v1"),
        pytest.param(("v1beta1",), ["v1", "v1beta1"], id="only v1beta1"),
    ],
)
async def test_the_newest_version_that_is_served_is_read(
    cluster: Cluster, served: Collection[str], asked: list[str]
) -> None:
    cluster.served = served
    assert "1250m" in (await cluster.top())[2]
    assert cluster.asked == asked


@pytest.mark.parametrize("status", [404, 503])
async def test_without_metrics_server_that_is_said(cluster: Cluster, status: int) -> None:
    cluster.metrics = refused(status, "NotFound", "404 page not found")
    with pytest.raises(
        NoMetrics,
        match=r"does not serve metrics.k8s.io/v1 or v1beta1: metrics-server is not installed",
    ):
        await cluster.top()


@pytest.mark.parametrize("served", [("v1",), ("v1beta1",), ()])
async def test_rbac_that_refuses_what_nobody_serves_is_not_the_reason(
    cluster: Cluster, served: Collection[str]
) -> None:
    cluster.metrics = refused(403, "Forbidden", 'cannot list resource "pods"')
    cluster.served = served
    with pytest.raises(errors.Forbidden if served else NoMetrics):
        await cluster.top()


async def test_what_else_is_wrong_is_said(cluster: Cluster) -> None:
    with pytest.raises(NoSuchJob, match="no MPIJob tran in namespace default; did you mean train"):
        await cluster.top("tran")
    cluster.metrics = refused(
        403, "Forbidden", 'cannot list resource "pods" in API group "metrics.k8s.io"'
    )
    with pytest.raises(errors.Forbidden, match=r"metrics\.k8s\.io"):
        await cluster.top()
    for pod in ("train-launcher", "train-worker-0", "train-worker-1", "train-worker-2"):
        cluster.api.remove(PODS.path("default", pod))
    with pytest.raises(NotStarted, match="no pod of train runs"):
        await cluster.top()


async def test_each_job_with_a_running_pod_is_a_row(cluster: Cluster) -> None:
    cluster.add_other()
    assert await cluster.top_jobs() == [
        "NAME    PODS   CPU(cores)   MEMORY(bytes)   GPUS   GPU(%)   GPU-MEMORY",
        "other   1      7000m        1Mi             -      -        -",
        "train   4      3252m        1631Mi          3      43       340Mi",
    ]


@pytest.mark.parametrize(
    ("by", "order"), [("cpu", ["other", "train"]), ("memory", ["train", "other"])]
)
async def test_the_job_that_uses_most_comes_first(
    cluster: Cluster, by: SortBy, order: list[str]
) -> None:
    cluster.add_other()
    assert [row.split()[0] for row in (await cluster.top_jobs(by))[1:]] == order


async def test_jobs_of_all_namespaces_have_a_column_for_theirs(cluster: Cluster) -> None:
    cluster.add_other()
    header, first, _ = await cluster.top_jobs(all_namespaces=True)
    assert header.startswith("NAMESPACE   NAME    PODS")
    assert first.startswith("default     other   1")


async def test_without_a_running_pod_there_is_no_row_and_no_metrics_are_asked_for(
    api: TinyApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.put(MPI_JOBS.path("default", "train"), worlds.mpi_job())
    where = Where(kubeconfig=api.kubeconfig, namespace="default")
    await top.top_jobs(where, labels="", sort_by=None, headers=True)
    assert capsys.readouterr() == ("", "No resources found in default namespace.\n")


def test_a_job_without_a_measured_pod_uses_nobody_knows_how_much() -> None:
    use = top.JobUse(pods=(top.Use(name="a", job_uid="u", node="n"),))
    assert (use.cpu, use.memory, use.gpu) == (None, None, None)
