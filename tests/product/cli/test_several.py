"""The same change of several jobs."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest

from mpijob_elastic import names
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import several, write_change
from mpijob_elastic.cli.jobs.size_request import SizeRequest, size_decision, suspending
from mpijob_elastic.cli.jobs.snapshot import Snapshot
from mpijob_elastic.cli.jobs.write_change import JobChange, Patience
from mpijob_elastic.cli.target import Where
from mpijob_elastic.kube.resources import EVENTS, LEASES, MPI_JOBS
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi
from tests.doubles.direct import Sent
from tests.product.cli.served import NAMESPACE, admit, put_job
from tests.product.cli.test_write_change import at_work_lease


@pytest.fixture
async def api() -> AsyncIterator[TinyApi]:
    """Two elastic jobs that train, and one that has ended."""
    async with TinyApi(selects=True) as found:
        found.put(LEASES.path(names.NAMESPACE, names.LEASE), at_work_lease())
        for job in ("one", "two"):
            put_job(found, job)
        put_job(found, "over", phase="Succeeded", conditions=("Created", "Succeeded"))
        admit(found)
        yield found


async def suspended(api: TinyApi, *jobs: str, wait: bool) -> Exit:
    where = Where(kubeconfig=api.kubeconfig, namespace=NAMESPACE)
    patience = Patience(wait=wait, seconds=0.1, look=False)
    return await several.change(where, jobs, suspending, patience)


def annotated(api: TinyApi) -> set[str]:
    """The jobs that are to be suspended."""
    return {
        job
        for job in ("one", "two", "over")
        if names.SUSPEND
        in api.objects[MPI_JOBS.path(NAMESPACE, job)]["metadata"].get("annotations", {})
    }


async def test_what_is_wrong_with_one_job_holds_back_no_other(
    api: TinyApi, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await suspended(api, "over", "one", "none", "two", wait=False) == Exit.REFUSED
    assert annotated(api) == {"one", "two"}
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines()][::2] == ["one", "two"]
    first, second = err.splitlines()
    assert first.startswith("mpijob-elastic: over has ended")
    assert second.startswith("mpijob-elastic: no MPIJob none")


async def test_all_are_written_before_the_first_is_waited_for(
    api: TinyApi, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(several, "_LEAST", 0.1)
    assert await suspended(api, "one", "two", wait=True) == Exit.NOT_KNOWN
    assert annotated(api) == {"one", "two"}
    out, err = capsys.readouterr()
    said = [line for line in out.splitlines() if "is being suspended" in line]
    assert [line.partition(" ")[0] for line in said] == ["one", "two"]
    assert err.count("the change still goes on") == 2


def warn_at_the_write(api: TinyApi, job: str) -> Callable[[Sent], object | None]:
    """Tell that a rank of a job is cut, right after its change is written."""
    usual, path = api.hook, MPI_JOBS.path(NAMESPACE, job)

    def answer(sent: Sent) -> object | None:
        if sent.path == path and sent.method == "PATCH" and "dryRun" not in sent.query:
            store_warning(api, job, f"new-{job}")
        return usual(sent)

    return answer


def store_warning(api: TinyApi, job: str, name: str) -> None:
    """Store an Event of the controller."""
    uid = api.objects[MPI_JOBS.path(NAMESPACE, job)]["metadata"]["uid"]
    api.put(
        EVENTS.path(NAMESPACE, name),
        {
            "metadata": {"name": name, "namespace": NAMESPACE},
            "involvedObject": {"kind": "MPIJob", "name": job, "uid": uid},
            "type": "Warning",
            "reason": "DrainTimeout",
            "message": f"{name}: its ranks are killed",
            "source": {"component": names.PROGRAM},
        },
    )


@pytest.mark.parametrize("jobs", [("one",), ("one", "two"), ("two", "one")])
async def test_a_rank_that_is_cut_while_another_job_is_waited_for_is_told(
    api: TinyApi,
    jobs: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(several, "_LEAST", 0.1)
    store_warning(api, "one", "old-one")
    api.hook = warn_at_the_write(api, "one")
    where = Where(kubeconfig=api.kubeconfig, namespace=NAMESPACE)
    patience = Patience(wait=True, seconds=5.0, look=False)
    decide = size_decision(SizeRequest(to=2), waits=True)

    async def touched(client: ApiWriter, snapshot: Snapshot) -> JobChange:
        """Return a change that is done at once, and is written all the same."""
        return replace(await decide(client, snapshot), patch=write_change.annotated("x", "y"))

    assert await several.change(where, jobs, touched, patience) == Exit.OTHERWISE
    assert "new-one: its ranks are killed" in capsys.readouterr().out
