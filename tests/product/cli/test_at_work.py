"""Whether a command can rely on mpijob-elastic: what one read tells, and what the commands say."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from aiohttp import web

from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import at_work, leader, several, show, snapshot, submit, watch
from mpijob_elastic.cli.jobs.at_work import AtWork, Leader
from mpijob_elastic.cli.jobs.creation import Creation
from mpijob_elastic.cli.jobs.show import JobsAsked
from mpijob_elastic.cli.jobs.size_request import SizeRequest, resuming, size_decision
from mpijob_elastic.cli.jobs.snapshot import NoSuchJob
from mpijob_elastic.cli.jobs.write_change import Patience
from mpijob_elastic.cli.target import Where
from mpijob_elastic.install import Refused
from mpijob_elastic.kube.lease import micro_time
from mpijob_elastic.kube.resources import LEASES, MPI_JOBS
from tests.doubles.api import refused
from tests.doubles.direct import Sent
from tests.product.cli import worlds
from tests.product.cli.cluster import Answers, forbidden, lease, reaching, serving, status, world
from tests.product.cli.test_write_change import A_LOOK, NO_WAIT, Server, at_work_lease, scaled

LEASE, HOOKS = "mpijob-elastic-controller", "mpijob-elastic"
NOT_FOUND = status(404, "NotFound")
# As `Answers` has it.
Answer = web.Response | Callable[[], web.Response]
ABSENT: Answers = {LEASE: NOT_FOUND, HOOKS: NOT_FOUND}


# The tables are made once, so the time that passes until a test runs does not count.
NOW = time.time()


def renewed(ago: float, holder: str = "a") -> web.Response:
    at = micro_time(datetime.fromtimestamp(NOW - ago, UTC))
    spec = {"holderIdentity": holder, "renewTime": at}
    return web.json_response({"metadata": {"name": "lease", "resourceVersion": "1"}, "spec": spec})


@pytest.mark.parametrize(
    ("answers", "installed", "words", "reads"),
    [
        pytest.param({LEASE: lease}, True, "", 1, id="at work"),
        pytest.param({LEASE: renewed(-3600)}, True, "", 1, id="our clock is behind"),
        pytest.param({LEASE: renewed(90)}, True, "no controller .* is running", 2, id="silent"),
        pytest.param({LEASE: renewed(20)}, True, "no controller .* is running", 2, id="expired"),
        pytest.param({LEASE: renewed(0, "")}, True, "is the leader", 2, id="nobody leads"),
        pytest.param({LEASE: forbidden("leases")}, True, "", 1, id="no right to know"),
        pytest.param(ABSENT, False, "mpijob-elastic is not installed", 2, id="not installed"),
        pytest.param(
            {LEASE: NOT_FOUND, HOOKS: forbidden("hooks")}, True, "", 2, id="perhaps elsewhere"
        ),
    ],
)
async def test_one_read_tells_where_all_is_well(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answers: Answers,
    installed: bool,
    words: str,
    reads: int,
) -> None:
    monkeypatch.setattr(leader, "AGAIN", 0.0)
    async with reaching(tmp_path, answers) as (client, asked):
        found = await at_work.check(client, now=NOW)
    assert found.installed is installed
    assert len(asked) == reads
    if words:
        assert re.search(words, found.trouble)
    else:
        assert not found.trouble
        assert found.known is all(
            answer is not None and answer.status != 403
            for answer in answers.values()
            if isinstance(answer, web.Response)
        )


async def test_get_says_that_nobody_works_and_no_job_counts_as_elastic(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(tmp_path, {**world(), **ABSENT}) as (where, _):
        assert await show.get([where], JobsAsked()) == Exit.DONE
        printed = capsys.readouterr()
        header, line = printed.out.splitlines()
        elastic = header.split().index("ELASTIC")
        assert line.split()[elastic] == "no"
        assert printed.err.startswith("Warning: mpijob-elastic is not installed in this cluster")
    async with serving(tmp_path, {**world(), LEASE: renewed(90)}) as (where, _):
        await show.get([where], JobsAsked())
        printed = capsys.readouterr()
        assert printed.out.splitlines()[1].split()[elastic] == "yes"
        assert printed.err.startswith("Warning: no controller of mpijob-elastic is running")


@pytest.mark.parametrize(
    ("lease", "words"),
    [
        pytest.param(NOT_FOUND, "mpijob-elastic is not installed in this cluster", id="absent"),
        pytest.param(renewed(90), "no controller of mpijob-elastic is running", id="silent"),
    ],
)
async def test_get_says_so_without_a_job_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lease: web.Response, words: str
) -> None:
    nobody: Answers = {LEASE: lease, HOOKS: NOT_FOUND}
    async with serving(tmp_path, {**world(), "mpijobs": [], **nobody}) as (where, _):
        assert await show.get([where], JobsAsked()) == Exit.DONE
    warning, last = capsys.readouterr().err.splitlines()
    assert warning.startswith(f"Warning: {words}")
    assert last.startswith("No resources found")


async def test_watch_says_that_nobody_works(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def deleted(*_: object, **_options: object) -> AsyncIterator[None]:
        yield None

    monkeypatch.setattr(watch, "follow", deleted)
    async with Server() as server:
        server.objects.pop(LEASES.path("mpijob-elastic", LEASE))
        where = Where(kubeconfig=server.kubeconfig, namespace="default")
        with pytest.raises(NoSuchJob, match="was deleted"):
            await watch.watch(where, job="train")
    words = "Warning: mpijob-elastic is not installed in this cluster"
    assert capsys.readouterr().err.startswith(words)


def controller(namespaces: str) -> web.Response:
    env = [{"name": "MPIJOB_ELASTIC_JOBS_NAMESPACE", "value": namespaces}] if namespaces else []
    spec = {"template": {"spec": {"containers": [{"env": env}]}}}
    return web.json_response({"metadata": {"name": LEASE}, "spec": spec})


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (controller("ml others"), ""),
        (controller(""), ""),
        (NOT_FOUND, ""),
        (controller("a b"), "covers only the jobs in a, b, so nobody .* in namespace ml"),
    ],
)
async def test_a_change_asks_whether_its_namespace_is_covered(
    tmp_path: Path, answer: web.Response, words: str
) -> None:
    async with reaching(tmp_path, {f"deployments/{LEASE}": answer}) as (client, asked):
        found = await at_work.check_change(client, "ml", now=time.time())
    assert len(asked) == 2
    assert (found.installed, bool(found.trouble)) == (not words, bool(words))
    assert re.search(words, found.trouble)


OURS = status(400, "BadRequest", 'admission webhook "x.webhook.mpijob-elastic" denied the request')
SILENT = web.json_response({})
NO_RIGHT = forbidden("x")
OPTED_OUT = web.json_response({"metadata": {"labels": {"mpijob-elastic/injection": "disabled"}}})
NO_LABEL = web.json_response({"metadata": {}})
UNANSWERED = "no webhook of mpijob-elastic answers for namespace ml"
DEAD_LEASE = renewed(90)


@pytest.mark.parametrize(
    ("leads", "webhook", "labels", "trouble", "doubt"),
    [
        pytest.param(lease, OURS, NO_LABEL, "", "", id="all is well"),
        pytest.param(lease, SILENT, NO_LABEL, "", UNANSWERED, id="only a leader"),
        pytest.param(lease, SILENT, NO_RIGHT, "", UNANSWERED, id="only a leader, labels unseen"),
        pytest.param(lease, SILENT, OPTED_OUT, "", "", id="opted out"),
        pytest.param(lease, NO_RIGHT, NO_LABEL, "", "", id="no right to ask"),
        pytest.param(NO_RIGHT, OURS, NO_LABEL, "", "", id="only the webhook"),
        pytest.param(NO_RIGHT, SILENT, OPTED_OUT, "", "", id="opted out, and no right to know"),
        pytest.param(NO_RIGHT, NO_RIGHT, NO_LABEL, "", "", id="no right at all"),
        pytest.param(DEAD_LEASE, OURS, NO_LABEL, "is running", "", id="between two controllers"),
        pytest.param(DEAD_LEASE, SILENT, OPTED_OUT, "is running", "", id="opted out, no leader"),
    ],
)
@pytest.mark.usefixtures("at_once")
async def test_a_sign_of_life_is_enough_to_change_a_size(
    tmp_path: Path,
    leads: Answer,
    webhook: web.Response,
    labels: web.Response,
    trouble: str,
    doubt: str,
) -> None:
    found, asked = await asked_by_a_user(tmp_path, leads, webhook, labels)
    assert found.installed
    assert trouble in found.trouble
    assert bool(found.trouble) is bool(trouble)
    assert found.doubt.startswith(doubt)
    assert bool(found.doubt) is bool(doubt)
    assert found.advice.endswith("status -n ml` says more" if doubt else "status` says more")
    questions = [one for one in asked if one.startswith("POST ")]
    assert len(questions) == (2 if webhook is SILENT else 1)
    assert all(one.endswith("/namespaces/ml/mpijobs?dryRun=All") for one in questions)


@pytest.mark.parametrize("leads", [NO_RIGHT, DEAD_LEASE, renewed(0, "")])
@pytest.mark.parametrize("labels", [NO_LABEL, NO_RIGHT])
@pytest.mark.usefixtures("at_once")
async def test_without_a_sign_of_life_no_size_is_changed(
    tmp_path: Path, leads: web.Response, labels: web.Response
) -> None:
    found, _ = await asked_by_a_user(tmp_path, leads, SILENT, labels)
    assert not found.installed
    assert found.trouble.startswith(UNANSWERED)
    assert found.advice == "an administrator runs `mpijob-elastic status -n ml`"


async def asked_by_a_user(
    folder: Path, leads: Answer, webhook: web.Response, labels: web.Response
) -> tuple[AtWork, list[str]]:
    """Return what a user learns, who may read no Deployment; and the requests."""
    answers: Answers = {
        LEASE: leads,
        f"deployments/{LEASE}": forbidden("deployments"),
        "POST mpijobs": webhook,
        "namespaces/ml": labels,
    }
    async with reaching(folder, answers) as (client, asked):
        return await at_work.check_change(client, "ml", now=NOW), asked


async def test_the_command_that_covers_one_more_namespace_keeps_the_others(tmp_path: Path) -> None:
    """The last options alone decide what is installed."""
    async with reaching(tmp_path, {f"deployments/{LEASE}": controller("a b")}) as (client, _):
        found = await at_work.check_change(client, "ml", now=time.time())
    assert found.advice == (
        "an administrator runs `mpijob-elastic install --jobs-namespace a --jobs-namespace b "
        "--jobs-namespace ml`, with the other options of the installation"
    )


def stored(sent: Sent) -> object:
    """Answer the question for the webhook as an API server without one."""
    return sent.body


async def test_no_size_is_written_for_a_user_where_nothing_answers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Neither the Lease nor the registration may be read, and no webhook refuses the bad job."""
    async with Server() as server:
        hook = server.hook

        def answer(sent: Sent) -> object | None:
            if sent.method == "POST":
                return stored(sent)
            if "/leases/" in sent.path or "webhookconfigurations" in sent.path:
                raise refused(403, "Forbidden", "no")
            return hook(sent)

        server.hook = answer
        with pytest.raises(Refused, match="no webhook of mpijob-elastic answers for namespace"):
            await scaled(server, A_LOOK)
        assert server.writes == []
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("answers", [True, False])
@pytest.mark.parametrize("jobs", [("train",), ("none", "train")])
async def test_who_may_patch_alone_asks_the_webhook_by_a_patch(
    answers: bool, jobs: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """The user may read nothing of the installation, and create no MPIJob."""
    async with Server() as server:
        hook = server.hook

        def answer(sent: Sent) -> object | None:
            closed = "/leases/" in sent.path or "webhookconfigurations" in sent.path
            if closed or sent.method == "POST":
                raise refused(403, "Forbidden", "no")
            if answers and sent.body and "?" in str(sent.body):
                raise refused(
                    422,
                    "Invalid",
                    'admission webhook "x.webhook.mpijob-elastic" denied the request',
                )
            return hook(sent)

        server.hook = answer
        where = Where(kubeconfig=server.kubeconfig, namespace="default")
        decide = size_decision(SizeRequest(to=4), waits=False)
        change = several.change(where, jobs, decide, NO_WAIT)
        if answers:
            assert await change == (Exit.DONE if len(jobs) == 1 else Exit.REFUSED)
        else:
            with pytest.raises(Refused, match="no webhook of mpijob-elastic answers for namespace"):
                await change
        assert server.size == (4 if answers else 2)
        assert len(server.writes) == answers


async def test_a_size_is_waited_for_where_only_the_webhook_is_silent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with Server() as server:
        hook = server.hook

        def answer(sent: Sent) -> object | None:
            if "/deployments/" in sent.path:
                raise refused(403, "Forbidden", "no")
            return stored(sent) if sent.method == "POST" else hook(sent)

        server.hook = answer
        assert await scaled(server, A_LOOK) == Exit.NOT_KNOWN
        assert server.size == 4
    printed = capsys.readouterr()
    assert printed.err.startswith("Warning: no webhook of mpijob-elastic answers for namespace")
    assert "the change still goes on" in printed.err


async def test_a_size_is_not_changed_where_nobody_carries_it_out() -> None:
    async with Server() as server:
        server.objects.pop(LEASES.path("mpijob-elastic", LEASE))
        with pytest.raises(Refused, match="mpijob-elastic is not installed in this cluster"):
            await scaled(server, A_LOOK)
        assert server.writes == []


async def test_a_change_that_waits_for_a_controller_ends_at_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with Server() as server:
        server.put(LEASES.path("mpijob-elastic", LEASE), at_work_lease(ago=90.0))
        assert await scaled(server, A_LOOK) == Exit.NOT_KNOWN
    assert server.size == 4
    printed = capsys.readouterr()
    assert printed.err.startswith("No controller of mpijob-elastic is running")
    assert "the change goes on" not in printed.err


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the second look at a Lease that has just expired at once."""
    monkeypatch.setattr(leader, "AGAIN", 0.0)


@pytest.mark.usefixtures("at_once")
async def test_a_change_waits_for_a_controller_whose_lease_has_just_expired(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with Server() as server:
        server.put(LEASES.path("mpijob-elastic", LEASE), at_work_lease(ago=30.0))
        assert await scaled(server, A_LOOK) == Exit.NOT_KNOWN
    assert server.size == 4
    printed = capsys.readouterr()
    words = "no controller of mpijob-elastic is running"
    first, *_, last = printed.err.splitlines()
    # A slow machine takes a second to look.
    renewed = r" \(the last leader renewed the Lease (3[0-9]|[4-9][0-9])s ago\)"
    assert re.match(f"N{words[1:]}{renewed}", first)
    assert last.startswith(f"Nothing is undone: {at_work.ONCE}, and `mpijob-elastic watch train")
    progress = printed.out.splitlines()[-1]
    assert progress.endswith(f"; {words}; {at_work.ONCE}")
    for false in ("goes on", "adds it next"):
        assert false not in printed.err + printed.out


async def test_a_controller_that_went_meanwhile_is_missed_at_the_timeout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its Lease has not expired, and is older than a leader lets it become."""
    monkeypatch.setattr(leader, "RENEWED_WITHIN", 0.0)
    async with Server() as server:
        assert await scaled(server, A_LOOK) == Exit.NOT_KNOWN
    printed = capsys.readouterr().err
    assert "next: mpijob-elastic status -n default" in printed
    assert f"Nothing is undone: {at_work.ONCE}, and `mpijob-elastic watch train" in printed
    assert "goes on" not in printed


async def test_a_job_that_nobody_looks_after_has_no_next_step() -> None:
    working = AtWork(trouble="no controller of mpijob-elastic is running")
    async with Server() as server:
        where = Where(kubeconfig=server.kubeconfig, namespace="default")
        async with reached(where) as (client, _):
            found = await snapshot.fetch_job(client, "default", "train")
        report = show.report_on(found, where, working, now=time.time(), whole=True)
    assert report.next == ["nothing: no controller of mpijob-elastic is running"]
    assert report.next_look is None


RELEASED = {"holderIdentity": "", "leaseDurationSeconds": 1}
EXPIRED = {"holderIdentity": "a", "leaseDurationSeconds": 15}


def as_of(ago: float, spec: worlds.Object) -> worlds.Object:
    """A Lease that was written so many seconds ago, which only a test that runs can make."""
    found = at_work_lease(ago=ago)
    return {**found, "spec": {**found["spec"], **spec}}


@pytest.mark.parametrize(
    ("first", "then", "trouble", "may_return"),
    [
        pytest.param((30.0, EXPIRED), (28.0, EXPIRED), "", False, id="a clock ahead"),
        pytest.param((120.0, EXPIRED), (118.0, EXPIRED), "", False, id="a clock far ahead"),
        pytest.param((1.0, RELEASED), (0.0, EXPIRED), "", False, id="handed over"),
        pytest.param((1.0, RELEASED), (1.0, RELEASED), "is the leader", True, id="released"),
        pytest.param((120.0, RELEASED), None, "is the leader", False, id="released long ago"),
        pytest.param((120.0, EXPIRED), None, "is running", False, id="dead"),
    ],
)
async def test_a_lease_without_a_leader_is_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
    first: tuple[float, worlds.Object],
    then: tuple[float, worlds.Object] | None,
    trouble: str,
    may_return: bool,
) -> None:
    path = LEASES.path("mpijob-elastic", LEASE)
    async with Server() as server:
        server.put(path, as_of(*first))

        async def write(_seconds: float) -> None:
            if then is not None:
                server.put(path, as_of(*then))

        where = Where(kubeconfig=server.kubeconfig, namespace="default")
        async with reached(where) as (client, _):
            monkeypatch.setattr(asyncio, "sleep", write)
            found = await at_work.check(client, now=time.time())
    assert (bool(found.trouble), found.may_return) == (bool(trouble), may_return)
    assert trouble in found.trouble


NOBODY = "no controller of mpijob-elastic is running"
DEAD = AtWork(trouble=f"{NOBODY} (30s ago): changes wait", may_return=True)
# Of each look at the Lease: the time in seconds, version and holder (None: it cannot be read), and
# then the trouble.
LOOKS: list[tuple[AtWork, list[tuple[float, tuple[str, str] | None, str]]]] = [
    (AtWork(), [(1.0, ("1", "a"), ""), (15.0, ("1", "a"), ""), (16.0, ("1", "a"), NOBODY)]),
    (AtWork(), [(1.0, ("1", "a"), ""), (14.0, ("2", "a"), ""), (28.0, ("2", "a"), "")]),
    (
        AtWork(),
        [(1.0, ("1", "a"), ""), (20.0, ("1", "a"), NOBODY), (21.0, ("2", "b"), "")],
    ),
    (AtWork(), [(1.0, ("1", ""), "no controller of mpijob-elastic is the leader")]),
    (AtWork(), [(1.0, None, ""), (20.0, None, "")]),
    (
        DEAD,
        [
            (1.0, ("1", "a"), NOBODY),
            (2.0, None, NOBODY),
            (3.0, ("2", "b"), ""),
        ],
    ),
]


@pytest.mark.parametrize(("working", "looks"), LOOKS)
async def test_a_command_that_waits_sees_the_controller_go_and_come(
    working: AtWork, looks: list[tuple[float, tuple[str, str] | None, str]]
) -> None:
    now, path = 0.0, LEASES.path("mpijob-elastic", LEASE)
    leader = Leader(working, clock=lambda: now)
    async with Server() as server:
        where = Where(kubeconfig=server.kubeconfig, namespace="default")
        async with reached(where) as (client, _):
            for at, lease, trouble in looks:
                now = at
                server.hook = partial(found, path, lease)
                assert await leader.look(client) == trouble, at
            now += 60.0
            is_read = any(lease for _, lease, _ in looks)
            assert leader.silence == (leader.trouble or NOBODY if is_read else None)


def found(path: str, lease: tuple[str, str] | None, sent: Sent) -> bytes | None:
    """Answer a read of the Lease at `path`."""
    if sent.path != path:
        return None
    if lease is None:
        raise refused(403, "Forbidden", "no")
    version, holder = lease
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15}
    return json.dumps(
        {"metadata": {"name": LEASE, "resourceVersion": version}, "spec": spec}
    ).encode()


WORDS = submit.Words(name="fresh", image="i", command=["horovodrun", "x"], env={}, data={})
FRESH = MPI_JOBS.path("default", "fresh")


async def test_submit_creates_no_job_where_nobody_would_look_after_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with Server() as server:
        server.objects.pop(LEASES.path("mpijob-elastic", LEASE))
        where = Where(kubeconfig=server.kubeconfig, namespace="default")
        with pytest.raises(Refused, match=r"is not installed in this cluster.* No job was created"):
            await submit.submit(where, WORDS, Creation())
        assert FRESH not in server.objects
    assert "created" not in capsys.readouterr().out


async def test_a_dry_run_warns_that_nobody_would_look_after_the_job(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with Server() as server:
        server.objects.pop(LEASES.path("mpijob-elastic", LEASE))
        server.hook = lambda sent: {"metadata": {"name": "fresh"}} if sent.body else None
        where = Where(kubeconfig=server.kubeconfig, namespace="default")
        assert await submit.submit(where, WORDS, Creation(dry_run="server")) == Exit.DONE
    assert "Warning: mpijob-elastic is not installed in this cluster" in capsys.readouterr().err


@pytest.mark.parametrize("patience", [None, A_LOOK])
@pytest.mark.usefixtures("at_once")
async def test_submit_says_once_that_no_controller_runs(
    patience: Patience | None, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Server() as server:
        server.put(LEASES.path("mpijob-elastic", LEASE), at_work_lease(ago=90.0))
        where = Where(kubeconfig=server.kubeconfig, namespace="default")
        code = await submit.submit(where, WORDS, Creation(patience=patience))
        assert FRESH in server.objects
    assert code == (Exit.NOT_KNOWN if patience else Exit.DONE)
    printed = capsys.readouterr()
    assert printed.err.count("no controller of mpijob-elastic is running") == 1
    assert ("trains once a controller runs" in printed.out) is (patience is None)


@pytest.mark.usefixtures("at_once")
async def test_a_change_of_several_jobs_says_once_that_no_controller_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with Server() as server:
        server.put(LEASES.path("mpijob-elastic", LEASE), at_work_lease(ago=90.0))
        where = Where(kubeconfig=server.kubeconfig, namespace="default")
        decide = size_decision(SizeRequest(to=1), waits=False)
        code = await several.change(where, ["train", "train"], decide, A_LOOK)
    assert code == Exit.NOT_KNOWN
    assert capsys.readouterr().err.count("o controller of mpijob-elastic is running") == 1


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        pytest.param(True, "", id="it answers"),
        pytest.param(
            False,
            "Warning: no webhook of mpijob-elastic answers for namespace default: it does not cover the "
            "namespace, a label of the namespace leaves the webhook out, or the webhook does not work. "
            "An elastic job that is created now may lack its host list; `mpijob-elastic status -n "
            "default` says more\n",
            id="it does not",
        ),
    ],
)
async def test_submit_asks_for_the_webhook_too_because_the_launcher_needs_it(
    answers: bool, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = submit.Words(name="fresh", image="i", command=["x"], env={}, data={}, np=1)
    async with Server() as server:
        server.webhook = answers
        where = Where(kubeconfig=server.kubeconfig, namespace="default")
        assert await submit.submit(where, asked, Creation()) == Exit.DONE
        assert MPI_JOBS.path("default", "fresh") in server.objects
    assert capsys.readouterr().err == words


GETS_NO_LIST = (
    "Warning: the webhook has changed no new job in namespace default: it is slow or older"
)


@pytest.mark.parametrize(("changes", "questions"), [(True, 1), (False, 3)])
async def test_who_creates_launchers_is_told_that_they_get_no_host_list(
    changes: bool, questions: int, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = submit.Words(name="fresh", image="i", command=["x"], env={}, data={}, np=1)
    sent_questions = list[Sent]()
    async with Server() as server:
        hook, server.webhook_changes = server.hook, changes

        def counted(sent: Sent) -> object | None:
            if sent.method == "POST" and "dryRun" in sent.query:
                sent_questions.append(sent)
            return hook(sent)

        server.hook = counted
        where = Where(kubeconfig=server.kubeconfig, namespace="default")
        assert await submit.submit(where, asked, Creation()) == Exit.DONE
        said = capsys.readouterr().err
        assert said.startswith(GETS_NO_LIST) is not changes
        assert bool(said) is not changes
        assert len(sent_questions) == questions
        await several.change(where, ["train"], resuming, NO_WAIT, creates=True)
        assert capsys.readouterr().err.startswith(GETS_NO_LIST) is not changes
        await scaled(server, NO_WAIT)
        assert not capsys.readouterr().err
