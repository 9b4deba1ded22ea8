"""One change of a job: what is written at which version, and what comes between."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mpijob_elastic import names
from mpijob_elastic.act import leader_writer
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import dependencies, write_change
from mpijob_elastic.cli.jobs.explain import NoSuchWorker
from mpijob_elastic.cli.jobs.size_request import SizeRequest, resuming, size_decision, suspending
from mpijob_elastic.cli.jobs.snapshot import NoSuchJob
from mpijob_elastic.cli.jobs.write_change import Decide, Patience
from mpijob_elastic.cli.target import Where
from mpijob_elastic.install import Refused
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.lease import micro_time
from mpijob_elastic.kube.resources import CONFIG_MAPS, EVENTS, LEASES, MPI_JOBS, PODS, ROLES
from mpijob_elastic.model.memory import Memory, SizeChange
from tests.doubles.api import TinyApi, merged, refused
from tests.doubles.direct import Sent
from tests.doubles.shells import Shells, prints
from tests.product.cli import worlds

JOB = MPI_JOBS.path("default", "train")
NO_WAIT = Patience(wait=False, seconds=0.1, look=False)
A_LOOK = Patience(wait=True, seconds=0.1, look=False)


def at_work_lease(*, ago: float = 1.0) -> worlds.Object:
    """A controller's Lease, renewed so many seconds ago."""
    at = micro_time(datetime.fromtimestamp(time.time() - ago, UTC))
    metadata = {"name": names.LEASE, "namespace": names.NAMESPACE}
    return {"metadata": metadata, "spec": {"holderIdentity": "a", "renewTime": at}}


class Server(TinyApi):
    """A cluster with a job of two workers at rest. between: done once, after the first dry run of a write."""

    def __init__(self) -> None:
        super().__init__(selects=True)
        self.between: Callable[[], None] = lambda: None
        self.hook = self._asked
        config = worlds.config_map(worlds.workers(0, 1))
        leader = worlds.launcher(refreshed=worlds.shown(config, at=worlds.CREATED))
        self.put(LEASES.path(names.NAMESPACE, names.LEASE), at_work_lease())
        self.put(JOB, worlds.mpi_job())
        self.put(CONFIG_MAPS.path("default", "train-config"), config)
        self.put(ROLES.path("default", "train-launcher"), worlds.role(worlds.workers(0, 1)))
        for pod in (leader, worlds.worker(0), worlds.worker(1)):
            pod["metadata"]["labels"] |= {"group-name": "kubeflow.org", "mpi-job-name": "train"}
            self.put(PODS.path("default", pod["metadata"]["name"]), pod)

    def edit(self, patch: dict[str, Any]) -> None:
        """Change the job as somebody else."""
        self.put(JOB, merged(self.objects[JOB], patch))

    @property
    def size(self) -> int:
        size: int = self.objects[JOB]["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
        return size

    def _asked(self, sent: Sent) -> object | None:
        if (sent.method, sent.query.get("dryRun")) != ("PATCH", "All"):
            return None
        if sent.method == "POST":
            raise refused(
                400, "BadRequest", 'admission webhook "x.webhook.mpijob-elastic" denied the request'
            )
        between, self.between = self.between, lambda: None
        answer = json.dumps(self.objects[JOB]).encode()
        between()
        return answer


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with Server() as api:
        yield api


async def scaled(
    server: Server, patience: Patience = NO_WAIT, *, grows: bool | None = True, **asked: Any
) -> Exit:
    where = Where(kubeconfig=server.kubeconfig, namespace="default")
    decide = size_decision(SizeRequest(grows=grows, **(asked or {"count": 2})), waits=patience.wait)
    return await write_change.change(where, "train", decide, patience)


async def test_a_dry_run_comes_first_and_a_change_of_something_else_is_no_obstacle(
    server: Server,
) -> None:
    server.between = lambda: server.edit(
        {"metadata": {"annotations": {"mpijob-elastic/status": "x"}}}
    )
    assert await scaled(server) == Exit.DONE
    assert server.size == 4
    assert server.writes == [("PATCH", JOB)]


async def test_a_size_that_somebody_sets_in_between_is_kept(server: Server) -> None:
    server.between = lambda: server.edit({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 3}}}})
    with pytest.raises(
        Refused, match=r"train was changed by somebody else at the same time\. Nothing was written"
    ):
        await scaled(server)
    assert server.size == 3


async def test_what_the_dry_run_refuses_is_not_written(server: Server) -> None:
    def refuse() -> None:
        raise refused(
            403,
            "Forbidden",
            'admission webhook "sizes.webhook.mpijob-elastic" denied the request: 4 is none of sizes',
        )

    server.between = refuse
    with pytest.raises(errors.Forbidden, match="4 is none of sizes"):
        await scaled(server)
    assert server.writes == []


async def test_a_size_that_it_has_is_not_written_and_waited_for(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await scaled(server, A_LOOK, to=2) == Exit.DONE
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first == "train already has size 2; nothing was changed"
    assert last.startswith(
        "train has 2 workers, all listed. Whether they train is not known: only exec can show that"
    )
    assert server.writes == []


async def test_a_warning_of_an_earlier_change_counts_not_though_events_were_away_for_a_moment(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    path, left = EVENTS.path("default"), [1]
    server.put(
        f"{path}/earlier",
        {
            "type": "Warning",
            "involvedObject": {"uid": "uid of default/train"},
            "reason": "DrainTimeout",
            "message": "a rank was cut",
            "source": {"component": names.PROGRAM},
        },
    )

    def fails(sent: Sent) -> object | None:
        if sent.path == path and left:
            left.pop()
            raise refused(503, "ServiceUnavailable", "shutting down")
        return Server._asked(server, sent)

    server.hook = fails
    assert await scaled(server, A_LOOK, to=2) == Exit.DONE
    assert "a rank was cut" not in capsys.readouterr().out
    assert left == []


async def test_slow_events_hold_no_write_back(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(*_: object) -> None:
        await asyncio.sleep(60.0)

    monkeypatch.setattr(dependencies, "own_warnings", slow)
    async with asyncio.timeout(10.0):
        assert await scaled(server, A_LOOK, to=2) == Exit.DONE


async def test_after_the_timeout_it_says_what_only_exec_shows(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.streams["/exec"] = Shells(prints("")).serve
    assert await scaled(server, replace(A_LOOK, look=True), to=2) == Exit.NOT_KNOWN
    assert capsys.readouterr().err.count("cause: nobody-trains") == 2


async def test_a_worker_that_is_not_there_at_once_is_no_alarm(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await scaled(server, A_LOOK) == Exit.NOT_KNOWN
    [_, line] = capsys.readouterr().out.splitlines()
    assert line.endswith("; train-worker-2 does not exist yet: the operator creates it")


async def test_without_an_answer_to_the_write_nobody_knows(server: Server) -> None:
    def lost(sent: Sent) -> object | None:
        if sent.method == "PATCH" and "dryRun" not in sent.query:
            raise refused(503, "ServiceUnavailable", "the server is going down")
        return Server._asked(server, sent)

    server.hook = lost
    with pytest.raises(
        errors.Unreachable,
        match="it is unknown whether train was changed; `mpijob-elastic get train -n",
    ):
        await scaled(server)


async def test_an_api_server_that_goes_away_is_no_end_of_the_change(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    def away(sent: Sent) -> object | None:
        if server.writes:
            raise refused(503, "Away")
        return Server._asked(server, sent)

    server.hook = away
    assert await scaled(server, A_LOOK) == Exit.NOT_KNOWN
    printed = capsys.readouterr()
    assert "no answer from the API server" in printed.out
    assert printed.err == (
        "After 0.1s the API server does not answer: the change goes on, and `mpijob-elastic watch train -n default` "
        "shows it.\n"
    )


async def test_a_job_that_is_deleted_meanwhile_is_said_to_be(server: Server) -> None:
    def gone(sent: Sent) -> object | None:
        if server.writes:
            server.objects.pop(JOB, None)
        return Server._asked(server, sent)

    server.hook = gone
    with pytest.raises(NoSuchJob, match="MPIJob train was deleted"):
        await scaled(server, A_LOOK)


async def test_suspension_needs_a_webhook_that_knows_it(server: Server) -> None:
    where = Where(kubeconfig=server.kubeconfig, namespace="default")
    with pytest.raises(
        Refused, match="no webhook in namespace default knows mpijob-elastic/suspend"
    ):
        await write_change.change(where, "train", suspending, NO_WAIT)
    assert server.writes == []


STOPPED = {"spec": {"schedulingGates": [{"name": names.GATE_SUSPENDED}], "nodeName": ""}}


@pytest.mark.parametrize(
    ("edit", "says", "writes"),
    [
        pytest.param(
            {"metadata": {"annotations": {names.SUSPEND: "true"}}},
            "train is suspended already; nothing was changed\n",
            0,
            id="by its user",
        ),
        pytest.param(
            {
                "metadata": {"annotations": {names.SCALE_TO_ZERO: "suspend"}},
                "spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 0}}},
            },
            "train is suspended already by its size, 0; it now stays so until it is resumed\n",
            1,
            id="by something else",
        ),
        pytest.param({}, "train is being suspended: its workers drain, and training ends", 1),
    ],
)
async def test_a_suspension_of_a_job_that_is_suspended_promises_nothing(
    server: Server,
    edit: dict[str, Any],
    says: str,
    writes: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    knows(server)
    server.edit(edit)
    for path in [path for path in server.objects if path.startswith(PODS.path("default"))]:
        if edit:
            stopped = {**STOPPED, "status": {"phase": "Pending"}}
            server.put(path, merged(server.objects[path], stopped))
    where = Where(kubeconfig=server.kubeconfig, namespace="default")
    assert await write_change.change(where, "train", suspending, NO_WAIT) == Exit.DONE
    assert capsys.readouterr().out.startswith(says)
    assert len(server.writes) == writes


def parked(server: Server) -> str | None:
    annotations: dict[str, str] = server.objects[JOB]["metadata"]["annotations"]
    return annotations.get("mpijob-elastic/parked")


def knows(server: Server) -> None:
    """Let a webhook refuse an annotation that cannot be read."""

    def asked(sent: Sent) -> object | None:
        if sent.body and "?" in (sent.body["metadata"].get("annotations") or {}).values():
            raise refused(
                403,
                "Forbidden",
                'admission webhook "sizes.webhook.mpijob-elastic" denied the request: "?" is no list',
            )
        return Server._asked(server, sent)

    server.hook = asked


@pytest.mark.parametrize(
    ("replicas", "before", "asked", "size", "after"),
    [
        pytest.param(2, "1,5", {"count": 2}, 3, "5", id="a parked worker comes back first"),
        pytest.param(5, "1,2", {"count": 1}, 5, "2", id="the lowest, and no other"),
        pytest.param(4, "1", {"to": 6}, 6, None, id="and then new ones"),
        pytest.param(
            4,
            "1",
            {"grows": False, "count": 1},
            3,
            "1",
            id="the last leaves, the parked are not counted",
        ),
        pytest.param(
            4,
            "3",
            {"grows": False, "count": 1},
            2,
            "3",
            id="a smaller size ends a parked worker at the top",
        ),
        pytest.param(4, None, {"grows": False, "pods": ["1"]}, 4, "1", id="a worker below others"),
        pytest.param(
            4, None, {"grows": False, "pods": ["train-worker-3"]}, 3, None, id="the last worker"
        ),
        pytest.param(
            4, None, {"grows": False, "pods": ["0", "3"]}, 3, "0", id="the last and another"
        ),
        pytest.param(
            4, "2", {"grows": False, "pods": ["3"]}, 2, "2", id="the last above one that is parked"
        ),
        pytest.param(
            4, "1", {"grows": False, "pods": ["1", "2"]}, 4, "1,2", id="one is parked already"
        ),
        pytest.param(4, None, {"grows": False, "nodes": ["node-0"]}, 4, "0", id="those of a node"),
        pytest.param(
            4,
            None,
            {"grows": False, "nodes": ["node-0"], "pods": ["0", "1"], "count": 2},
            4,
            "0,1",
            id="both",
        ),
    ],
)
async def test_workers_are_parked_and_come_back(
    server: Server, replicas: int, before: str | None, asked: Any, size: int, after: str | None
) -> None:
    server.edit({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": replicas}}}})
    server.edit({"metadata": {"annotations": {"mpijob-elastic/parked": before}}})
    knows(server)
    assert await scaled(server, **asked) == Exit.DONE
    assert (server.size, parked(server)) == (size, after)


@given(replicas=st.integers(2, 9), parked=st.sets(st.integers(0, 11)), data=st.data())
def test_exactly_those_leave_and_exactly_so_many_stay(
    replicas: int, parked: set[int], data: st.DataObject
) -> None:
    annotations = {"mpijob-elastic/parked": ",".join(map(str, sorted(parked)))} if parked else {}
    [found] = worlds.read([worlds.mpi_job(replicas=replicas, annotations=annotations)])
    view, wanted = found.view, set(found.view.wanted)
    assume(len(wanted) > 1)

    def workers(number: int, without: Collection[int]) -> set[int]:
        return set(range(number)).difference(without)

    leaving = frozenset(
        data.draw(st.sets(st.sampled_from(sorted(wanted)), max_size=len(wanted) - 1))
    )
    number, stays_away = view.facts.shrunk(leaving)
    assert workers(number, stays_away) == wanted - leaving
    assert stays_away - parked <= leaving

    size = len(wanted) + data.draw(st.integers(1, 5))
    number, stays_away = view.facts.grown(view.facts.next_workers(size - len(wanted)))
    assert workers(number, stays_away) > wanted
    assert len(workers(number, stays_away)) == size
    assert stays_away <= parked
    assert number == replicas or not workers(number, ()) & stays_away, (
        "those that are parked come first"
    )


@pytest.mark.parametrize(
    ("asked", "error", "why"),
    [
        ({"pods": ["2"]}, Refused, "train has no train-worker-2: it has 2 workers"),
        (
            {"pods": ["x"]},
            NoSuchWorker,
            "train has no worker x: give a number like 0 or a pod like train-worker-0",
        ),
        ({"nodes": ["node-7"]}, Refused, "no worker of train is on a node node-7"),
        ({"pods": ["0", "1"]}, Refused, "train has 2 workers, and at least one must stay"),
        (
            {"pods": ["1"], "count": 2},
            Refused,
            "--count 2 does not match the workers named: train-worker-1",
        ),
    ],
)
async def test_workers_that_cannot_leave_are_refused(
    server: Server, asked: Any, error: type[Exception], why: str
) -> None:
    knows(server)
    with pytest.raises(error, match=why):
        await scaled(server, grows=False, **asked)
    assert server.writes == []


async def test_parking_needs_a_webhook_that_knows_it(server: Server) -> None:
    with pytest.raises(
        Refused,
        match="no webhook in namespace default knows mpijob-elastic/parked, so the operator",
    ):
        await scaled(server, grows=False, pods=["0"])
    assert server.writes == []


async def test_what_is_parked_is_said(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    knows(server)
    await scaled(server, grows=False, pods=["0"])
    await scaled(server, count=1)
    assert capsys.readouterr().out.splitlines()[::2] == [
        "train: 2 → 1 worker; parked: train-worker-0",
        "train: 1 → 2 workers; back: train-worker-0",
    ]


async def test_what_a_webhook_warns_of_is_said_once(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.warnings = ['spec: the quota "team" has no room, for 2', "a\\b\u202e"]
    assert await scaled(server) == Exit.DONE
    assert capsys.readouterr().err.splitlines() == [
        'Warning: spec: the quota "team" has no room, for 2',
        "Warning: a\\b\\u202e",
    ]


async def test_parked_workers_that_are_named_come_back(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    knows(server)
    server.edit({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 4}}}})
    found = server.objects[JOB]["metadata"].get("annotations", {})
    await scaled(server, grows=False, pods=["0", "1"])
    capsys.readouterr()
    await scaled(server, pods=["1"])
    assert capsys.readouterr().out.splitlines()[0] == "train: 2 → 3 workers; back: train-worker-1"
    assert server.objects[JOB]["metadata"]["annotations"] == {**found, "mpijob-elastic/parked": "0"}
    await scaled(server, pods=["1"])
    assert (
        capsys.readouterr().out.splitlines()[0] == "train already has size 3; nothing was changed"
    )
    with pytest.raises(Refused, match="train has no train-worker-4: it has 3 workers"):
        await scaled(server, pods=["4"])


OVER = {
    "status": {
        "conditions": [{"type": "Failed", "status": "True"}],
        "completionTime": worlds.CREATED_TEXT,
    }
}
PLAIN = {
    "spec": {
        "mpiReplicaSpecs": {
            "Launcher": {"template": {"spec": {"containers": [{"name": "launcher"}]}}}
        }
    }
}


@pytest.mark.parametrize(
    ("edit", "launcher", "why"),
    [
        (
            {"metadata": {"deletionTimestamp": worlds.CREATED_TEXT}},
            "Running",
            "train is being deleted",
        ),
        (OVER, "Failed", r"train has ended \(Failed\); create it again to run it again"),
        (
            {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": None}}}},
            "Running",
            "train does not say its size",
        ),
        (
            {"spec": {"mpiReplicaSpecs": {"Worker": None}}},
            "Running",
            "train has no role Worker, so it has no size",
        ),
    ],
)
async def test_a_job_that_cannot_change_is_refused(
    server: Server, edit: dict[str, Any], launcher: str, why: str
) -> None:
    server.edit(edit)
    path = PODS.path("default", "train-launcher")
    server.put(path, merged(server.objects[path], {"status": {"phase": launcher}}))
    with pytest.raises(Refused, match=why):
        await scaled(server)
    assert server.writes == []


@pytest.mark.parametrize("decide", [resuming, suspending])
async def test_a_job_without_workers_is_neither_resumed_nor_suspended(
    server: Server, decide: Decide
) -> None:
    """A job at zero is resumed by a size, which would be a role without a template."""
    server.edit({"spec": {"mpiReplicaSpecs": {"Worker": None}}})
    where = Where(kubeconfig=server.kubeconfig, namespace="default")
    with pytest.raises(Refused, match="train has no role Worker"):
        await write_change.change(where, "train", decide, NO_WAIT)
    assert server.writes == []


async def test_a_plain_job_is_refused_unless_its_launcher_is_elastic(server: Server) -> None:
    """An edit to a plain command is for the next launcher."""
    server.edit(PLAIN)
    await scaled(server)
    del server.objects[PODS.path("default", "train-launcher")]
    before = list(server.writes)
    why = "train is not elastic, so it runs as it is to its end; `mpijob-elastic explain train -n"
    with pytest.raises(Refused, match=why):
        await scaled(server)
    assert server.writes == before


WAITS = [
    (
        {"annotations": {"mpijob-elastic/suspend": "true"}},
        "is suspended by annotation mpijob-elastic/suspend",
    ),
    ({"labels": {LABEL_QUEUE: "team"}}, "does not run yet, because it waits in queue team"),
]


@pytest.mark.parametrize(("asks", "why"), WAITS)
@pytest.mark.parametrize(
    "asked", [{"count": 2}, {"grows": False, "count": 1}, {"grows": False, "pods": ["1"]}]
)
async def test_nobody_waits_for_the_size_of_a_job_that_waits_itself(
    server: Server, asks: dict[str, Any], why: str, asked: dict[str, Any]
) -> None:
    server.edit({"metadata": asks})
    path = PODS.path("default", "train-launcher")
    gates = [{"name": names.GATE_QUEUED}]
    server.put(
        path,
        merged(
            server.objects[path],
            {"spec": {"schedulingGates": gates}, "status": {"phase": "Pending"}},
        ),
    )
    with pytest.raises(
        Refused, match=f"train {why}.*; with --no-wait the size is set for its start"
    ):
        await scaled(server, A_LOOK, **asked)
    assert server.writes == []
    assert await scaled(server, **asked) == Exit.DONE


ZERO = {
    "metadata": {"annotations": {names.SCALE_TO_ZERO: "suspend"}},
    "spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 0}}},
}


def remembers(server: Server, size: int) -> None:
    """Let the job remember this size as the last one that was published."""
    memory = Memory(scale=SizeChange(before=0, after=size, at=worlds.CREATED))
    path = CONFIG_MAPS.path("default", "train-config")
    server.put(path, worlds.config_map(worlds.workers(0, 1), memory=memory))


@pytest.mark.parametrize(
    ("edit", "size", "said"),
    [
        pytest.param({}, 3, "train is being resumed with 3 workers", id="the size before"),
        pytest.param(
            {"metadata": {"annotations": {names.SUSPEND: "true"}}},
            3,
            "train is being resumed with 3 workers",
            id="suspended twice",
        ),
        pytest.param(
            {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 2}}}},
            2,
            "train is not suspended",
            id="it has a size",
        ),
    ],
)
async def test_resume_gives_a_job_at_zero_the_size_before(
    server: Server,
    edit: dict[str, Any],
    size: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    remembers(server, 3)
    server.edit(merged(ZERO, edit))
    where = Where(kubeconfig=server.kubeconfig, namespace="default")
    assert await write_change.change(where, "train", resuming, NO_WAIT) == Exit.DONE
    assert (server.size, said in capsys.readouterr().out) == (size, True)
    assert names.SUSPEND not in server.objects[JOB]["metadata"]["annotations"]


@pytest.mark.parametrize("suspended", [False, True])
async def test_a_larger_size_resumes_a_job_at_zero(server: Server, suspended: bool) -> None:
    server.edit(ZERO)
    if suspended:
        server.edit({"metadata": {"annotations": {names.SUSPEND: "true"}}})
        with pytest.raises(Refused, match="train is suspended by annotation"):
            await scaled(server, A_LOOK)
    else:
        assert await scaled(server, A_LOOK) == Exit.DONE
    assert server.size == (0 if suspended else 2)


async def test_nobody_scales_in_to_zero(server: Server) -> None:
    server.edit({"metadata": ZERO["metadata"]})
    with pytest.raises(Refused, match="at least one must stay: `mpijob-elastic suspend train"):
        await scaled(server, grows=False, to=0)


@pytest.mark.parametrize(
    ("when", "said"),
    [
        (
            "write",
            "Interrupted. It is unknown whether train was changed; `mpijob-elastic get train -n default` shows it.",
        ),
        (
            "wait",
            "Interrupted. Nothing is undone, the change goes on: `mpijob-elastic watch train -n default` shows it.",
        ),
    ],
)
async def test_ctrl_c_undoes_nothing_and_says_what_goes_on(
    server: Server, capsys: pytest.CaptureFixture[str], when: str, said: str
) -> None:
    running = asyncio.create_task(scaled(server, Patience(wait=True, seconds=60, look=False)))

    def interrupted(sent: Sent) -> object | None:
        if (
            server.writes
            if when == "wait"
            else sent.method == "PATCH" and "dryRun" not in sent.query
        ):
            running.cancel()
        return Server._asked(server, sent)

    server.hook = interrupted
    with pytest.raises(asyncio.CancelledError):
        await running
    assert capsys.readouterr().err.splitlines() == [said]
    assert server.size == 4


async def test_another_operators_job_is_left_alone(server: Server) -> None:
    worker, config = (
        PODS.path("default", "train-worker-0"),
        CONFIG_MAPS.path("default", "train-config"),
    )
    server.put(
        worker, merged(server.objects[worker], {"metadata": {"labels": {"replica-index": "0"}}})
    )
    server.put(config, merged(server.objects[config], {"metadata": {"annotations": None}}))
    with pytest.raises(Refused, match="another operator manages train: "):
        await scaled(server)


def test_what_a_user_changes_is_told_from_what_the_controller_does() -> None:
    assert write_change.MANAGER != leader_writer.MANAGED
