"""The same change of several jobs."""

from collections.abc import AsyncIterator

import pytest

from mpijob_elastic import names
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import several
from mpijob_elastic.cli.jobs.size_request import suspending
from mpijob_elastic.cli.jobs.write_change import Patience
from mpijob_elastic.cli.target import Where
from mpijob_elastic.kube.resources import LEASES, MPI_JOBS
from tests.doubles.api import TinyApi
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
