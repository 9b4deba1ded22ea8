"""`logs` as it is typed, and whose lines are whose."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from mpijob_elastic.cli.jobs.explain import NoSuchWorker
from mpijob_elastic.cli.jobs.logs import Position, Wanted, logs
from mpijob_elastic.cli.jobs.pods import NotStarted
from mpijob_elastic.cli.jobs.snapshot import NoSuchJob
from mpijob_elastic.cli.target import Where
from mpijob_elastic.kube import errors
from tests.doubles.api import TinyApi, refused
from tests.doubles.launcher_logs import Launcher
from tests.doubles.shells import Asked, Message, Shells, prints
from tests.product.cli.test_commands import typed

LINES = (
    "0:00 horovodrun starts",
    "0:01 [0]<stdout>:a",
    "0:01 [1]<stdout>:b",
    "0:09 [0]<stdout>:c",
    "0:09 [1]<stderr>:d",
)
# train-worker-2 was started at 0:05 with the rank that train-worker-0 has had from the start.
RANKS = "main 1000 look 5000\n7 1010 0 train-worker-0\n8 1010 1 train-worker-1--containermain\n9 1500 0 train-worker-2\n"


class Cluster:
    """A job whose launcher has written the lines. shells: its execs. texts: its log, line by line."""

    def __init__(self, api: TinyApi, capsys: pytest.CaptureFixture[str]) -> None:
        self.shells = Shells(prints(RANKS))
        self.texts = [f"2026-01-01T00:0{line[:4]}.123456789Z {line[5:]}\n" for line in LINES]
        self.launcher = Launcher()
        self.queries: list[dict[str, str]] = []
        self.refused: errors.ApiError | None = None
        self._api, self._capsys = api, capsys
        api.streams |= {"/log": self._log, "/exec": self.shells.serve}
        api.hook = lambda sent: (
            self.launcher.show(sent.path) if sent.name in ("train", "train-launcher") else None
        )

    async def _log(self, request: web.Request) -> web.Response:
        self.queries.append(dict(request.query))
        return web.Response(text="".join(self.texts))

    async def logs(self, job: str = "train", **wanted: object) -> tuple[list[str], list[str]]:
        """Return the lines of standard output and of standard error."""
        where = Where(kubeconfig=self._api.kubeconfig, namespace="n")
        await logs(where, job=job, wanted=Wanted(**wanted))  # type: ignore[arg-type]
        out, err = self._capsys.readouterr()
        return out.splitlines(), err.splitlines()


@pytest.fixture
async def cluster(api: TinyApi, capsys: pytest.CaptureFixture[str]) -> Cluster:
    return Cluster(api, capsys)


ALL = ["horovodrun starts", "[0]<stdout>:a", "[1]<stdout>:b", "[0]<stdout>:c", "[1]<stderr>:d"]


async def test_the_log_is_printed_as_it_is(cluster: Cluster) -> None:
    cluster.texts[-1] = cluster.texts[-1].replace("d\n", "d\t\x1b[31m")  # without an end of line
    out, err = await cluster.logs()
    assert (out, err) == ([*ALL[:-1], "[1]<stderr>:d\t\x1b[31m"], [])
    assert cluster.queries == [{"container": "main", "timestamps": "true"}]
    assert not cluster.shells.asked


async def test_the_kubelet_is_asked_for_the_part_that_is_wanted(cluster: Cluster) -> None:
    out, _ = await cluster.logs(since=90.0, tail=2, previous=True)
    assert out == ALL[-2:]
    [query] = cluster.queries
    assert (query["sinceSeconds"], query["tailLines"]) == ("90", "2")
    assert query["previous"] == "true"


async def test_the_kubelet_is_asked_for_a_moment(cluster: Cluster) -> None:
    await cluster.logs(since_time="2026-01-01T00:00:05Z")
    [query] = cluster.queries
    assert query["sinceTime"] == "2026-01-01T00:00:05Z"


def wanted(monkeypatch: pytest.MonkeyPatch, *words: str) -> Wanted | str:
    """What is asked for with these words, or what is said against them."""
    found = list[Wanted]()

    async def noted(_: Where, *, job: str, wanted: Wanted) -> None:
        assert job == "train"
        found.append(wanted)

    monkeypatch.setattr("mpijob_elastic.cli.jobs.logs.logs", noted)
    done = typed("logs", "train", *words)
    return found[0] if found else " ".join(done.output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("2026-01-31T08:00:00Z", "2026-01-31T08:00:00Z"),
        ("2026-01-31T10:00:00+02:00", "2026-01-31T08:00:00Z"),
        ("2026-01-31 08:00:00+00:00", "2026-01-31T08:00:00Z"),
        ("20260131T080000Z", "2026-01-31T08:00:00Z"),
        ("2026-01-31T08:00+00:00", "2026-01-31T08:00:00Z"),
        ("2026-01-31T08:00:00.25Z", "2026-01-31T08:00:00.250000Z"),
    ],
)
def test_a_moment_is_sent_as_the_api_server_reads_it(
    given: str, sent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RFC 3339 is narrower than ISO 8601."""
    assert wanted(monkeypatch, f"--since-time={given}") == Wanted(since_time=sent)


@pytest.mark.parametrize(
    "given", ["yesterday", "2026-01-31", "2026-01-31T08:00:00", "0001-01-01T00:00:00+14:00"]
)
def test_what_is_no_moment_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = str(wanted(monkeypatch, f"--since-time={given}"))
    assert f"{given} is no moment such as" in said


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (("--tail=-1",), Wanted()),
        (("--tail", "-1"), Wanted()),
        (("--tail=0",), Wanted(tail=0)),
        (("--since=0",), Wanted()),
        (
            ("--since=0s", "--since-time=2026-01-31T08:00:00Z"),
            Wanted(since_time="2026-01-31T08:00:00Z"),
        ),
        (("--since=90s",), Wanted(since=90.0)),
        (("--since=0", "--tail=-1", "-f"), Wanted(follow=True)),
    ],
)
def test_what_kubectl_takes_for_no_limit_is_none(
    words: tuple[str, ...], asked: Wanted, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert wanted(monkeypatch, *words) == asked


@pytest.mark.parametrize("words", [("--tail=-2",), ("--since=-1s",), ("--since=x",)])
def test_other_limits_are_refused(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(wanted(monkeypatch, *words), str)


def test_a_moment_is_asked_for_until_the_first_line_has_come() -> None:
    position = Position(Wanted(since_time="2026-01-01T00:00:05Z").first())
    for waited in (0.0, 7.0):
        assert position.query(waited=waited) == {"sinceTime": "2026-01-01T00:00:05Z"}
    position.take(b"2026-01-01T00:00:09.5Z a")
    assert position.query(waited=9.0) == {"sinceTime": "2026-01-01T00:00:08Z"}


async def test_each_line_has_its_time_if_that_is_wanted(cluster: Cluster) -> None:
    out, _ = await cluster.logs(timestamps=True, tail=1)
    assert out == ["2026-01-01T00:00:09.123456789Z [1]<stderr>:d"]
    out, _ = await cluster.logs(timestamps=True, worker="1", tail=1)
    assert out == ["2026-01-01T00:00:09.123456789Z train-worker-1: [1]<stderr>:d"]


async def test_a_line_that_fits_two_workers_names_both(cluster: Cluster) -> None:
    out, err = await cluster.logs(rank=0)
    assert out == ["train-worker-0: [0]<stdout>:a", "train-worker-0, train-worker-2: [0]<stdout>:c"]
    assert err == []
    out, _ = await cluster.logs(worker="2")
    assert out == ["train-worker-0, train-worker-2: [0]<stdout>:c"]
    out, _ = await cluster.logs(worker="train-worker-1", tail=1)
    assert out == ["train-worker-1: [1]<stderr>:d"]
    assert "tailLines" not in cluster.queries[-1]


async def test_a_line_of_a_worker_that_has_gone_is_not_given_to_another(cluster: Cluster) -> None:
    cluster.shells.says = prints("main 1000 look 5000\n9 1500 0 train-worker-2\n")
    out, _ = await cluster.logs(rank=0)
    assert out == ["ended: [0]<stdout>:a", "train-worker-2: [0]<stdout>:c"]


async def refuses(_: Asked) -> AsyncIterator[Message]:
    lacks = 'User "u" cannot get resource "pods/exec" in API group "" in the namespace "ml"'
    raise refused(403, "Forbidden", f'pods "train-worker-0" is forbidden: {lacks}')
    yield


async def test_without_the_right_to_exec_the_printed_number_counts_and_that_is_said(
    cluster: Cluster,
) -> None:
    cluster.shells.says = refuses
    out, [line] = await cluster.logs(rank=1)
    assert out == ["[1]<stdout>:b", "[1]<stderr>:d"]
    lacks = "your account may not get pods/exec in namespace ml"
    assert line.startswith(
        f"mpijob-elastic: it is not known which worker prints [1]: {lacks}; the ClusterRole"
    )
    assert line.endswith("; --rank means the number that Horovod prints")
    with pytest.raises(
        NotStarted, match=f"it is not known which lines come from train-worker-1: {lacks}"
    ):
        await cluster.logs(worker="1")


async def test_nobody_looks_into_a_launcher_that_has_ended(cluster: Cluster) -> None:
    cluster.launcher.finish()
    out, [line] = await cluster.logs(rank=1, follow=True)
    assert out == ["[1]<stdout>:b", "[1]<stderr>:d"]
    assert "it is not known which worker prints [1]: train-launcher has ended" in line
    assert not cluster.shells.asked


@pytest.mark.parametrize(
    ("worker", "words"),
    [
        ("other-worker-1", "train has no worker other-worker-1: give a number"),
        ("-1", "train has no worker -1"),
    ],
)
async def test_an_unknown_worker_is_said(cluster: Cluster, worker: str, words: str) -> None:
    with pytest.raises(NoSuchWorker, match=words):
        await cluster.logs(worker=worker)


@pytest.mark.parametrize(
    ("worker", "size", "error", "words"),
    [
        ("7", 3, NoSuchWorker, "train has no train-worker-7: it has 3 workers"),
        ("7", 8, NotStarted, "no rank runs in train-worker-7, so no line is known to come from it"),
    ],
)
async def test_a_worker_beyond_the_size_is_none_of_the_job(
    cluster: Cluster, worker: str, size: int, error: type[Exception], words: str
) -> None:
    cluster.launcher.workers = size
    with pytest.raises(error, match=words):
        await cluster.logs(worker=worker)


async def test_a_worker_that_leaves_has_its_lines_until_its_rank_ends(cluster: Cluster) -> None:
    cluster.launcher.workers = 2
    out, _ = await cluster.logs(worker="2")
    assert out == ["train-worker-0, train-worker-2: [0]<stdout>:c"]


async def test_an_unknown_job_and_one_that_has_not_started_are_said(cluster: Cluster) -> None:
    with pytest.raises(NoSuchJob, match="no MPIJob tran in namespace n"):
        await cluster.logs("tran")
    cluster.launcher.pending = True
    words = "train-launcher has not started: Pending; `mpijob-elastic explain train` says more"
    with pytest.raises(NotStarted, match=words):
        await cluster.logs()
    cluster.launcher.gone = True
    with pytest.raises(NotStarted, match="train-launcher does not exist yet"):
        await cluster.logs()
