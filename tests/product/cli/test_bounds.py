"""`set bounds`: what it writes and refuses, and `scale` that knows the size before."""

from collections.abc import AsyncIterator

import pytest
from typer.testing import CliRunner

from mpijob_elastic import names
from mpijob_elastic.cli import app
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import bounds_request
from mpijob_elastic.cli.jobs.bounds_request import in_words
from mpijob_elastic.cli.target import Where
from mpijob_elastic.install import Refused
from mpijob_elastic.kube.resources import LEASES, MPI_JOBS
from tests.doubles.api import TinyApi
from tests.product.cli.served import NAMESPACE, admit, put_job
from tests.product.cli.test_write_change import Server, at_work_lease, scaled

LOW, HIGH = names.MIN_REPLICAS, names.MAX_REPLICAS


@pytest.fixture
async def api() -> AsyncIterator[TinyApi]:
    """A job of four workers without bounds, and one of three that may have 2 to 8."""
    async with TinyApi(selects=True) as found:
        found.put(LEASES.path(names.NAMESPACE, names.LEASE), at_work_lease())
        put_job(found, "free", size=4)
        put_job(found, "bound", size=3, annotations={LOW: "2", HIGH: "8"})
        line = ["horovodrun", "--max-np", "4", "--host-discovery-script", names.DISCOVER_HOSTS_PATH]
        put_job(found, "capped", size=3, command=[*line, "python", "train.py"])
        admit(found)
        yield found


async def bounded(
    api: TinyApi, *jobs: str, least: int | None = None, most: int | None = None
) -> Exit:
    where = Where(kubeconfig=api.kubeconfig, namespace=NAMESPACE)
    return await bounds_request.set_bounds(where, jobs, least=least, most=most)


def stored(api: TinyApi, job: str) -> tuple[str | None, str | None]:
    annotations = api.objects[MPI_JOBS.path(NAMESPACE, job)]["metadata"].get("annotations", {})
    return annotations.get(LOW), annotations.get(HIGH)


@pytest.mark.parametrize(
    ("job", "least", "most", "after", "says"),
    [
        (
            "free",
            2,
            8,
            ("2", "8"),
            "free may have 2 to 8 workers, instead of any number of workers",
        ),
        ("free", None, 4, (None, "4"), "free may have 1 to 4 workers, instead of any number"),
        (
            "capped",
            2,
            8,
            ("2", "8"),
            "capped may have 2 to 8 workers, instead of any number of workers. But horovodrun's "
            "--max-np is 4: beyond 4 workers no rank runs, until the job has a new launcher with a "
            "larger one\n",
        ),
        (
            "capped",
            None,
            4,
            (None, "4"),
            "capped may have 1 to 4 workers, instead of any number of workers\n",
        ),
        ("bound", 3, None, ("3", "8"), "bound may have 3 to 8 workers, instead of 2 to 8 workers"),
        ("bound", None, 0, ("2", None), "bound may have 2 workers or more, instead of 2 to 8"),
        ("bound", 0, 0, (None, None), "bound may have any number of workers, instead of 2 to 8"),
        ("bound", 2, 8, ("2", "8"), "bound may have 2 to 8 workers already; nothing was changed"),
    ],
)
async def test_a_bound_is_set_removed_or_left(
    api: TinyApi,
    capsys: pytest.CaptureFixture[str],
    job: str,
    least: int | None,
    most: int | None,
    after: tuple[str | None, str | None],
    says: str,
) -> None:
    assert await bounded(api, job, least=least, most=most) == Exit.DONE
    assert stored(api, job) == after
    assert capsys.readouterr().out.startswith(says)


@pytest.mark.parametrize(
    ("job", "least", "most", "words"),
    [
        ("free", 5, None, "free has 4 workers: `mpijob-elastic scale free -n ml --replicas 5`"),
        ("free", None, 3, "free has 4 workers: `mpijob-elastic scale free -n ml --replicas 3`"),
        ("bound", 9, None, r"the fewest workers \(9\) would be more than the most \(8\)"),
        ("none", 1, None, "no MPIJob none"),
    ],
)
async def test_bounds_that_do_not_fit_are_refused(
    api: TinyApi, job: str, least: int | None, most: int | None, words: str
) -> None:
    with pytest.raises(Exception, match=words):
        await bounded(api, job, least=least, most=most)
    assert api.writes == []


async def test_what_is_wrong_with_one_job_holds_back_no_other(
    api: TinyApi, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await bounded(api, "free", "bound", most=3) == Exit.REFUSED
    assert (stored(api, "free"), stored(api, "bound")) == ((None, None), ("2", "3"))
    assert "mpijob-elastic: free has 4 workers" in capsys.readouterr().err


async def test_without_a_webhook_that_knows_them_no_bounds_are_written(api: TinyApi) -> None:
    api.hook = lambda sent: {} if "dryRun" in sent.query else None
    with pytest.raises(Refused, match="so nobody would keep to that bound"):
        await bounded(api, "free", most=4)


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ((0, 0), "any number of workers"),
        ((1, 0), "1 worker or more"),
        ((0, 1), "1 to 1 worker"),
        ((2, 4), "2 to 4 workers"),
    ],
)
def test_bounds_in_words(bounds: tuple[int, int], words: str) -> None:
    assert in_words(bounds) == words


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("set bounds train", "give --min, --max or both"),
        ("set bounds train --min 0", "0 is neither a number above 0 nor none"),
        ("set bounds train --max many", "many is neither a number above 0 nor none"),
        ("events train --types Warning,Bad", "Bad: the types are Normal and Warning"),
        ("events train -w -o json", "new Events are rows of a table"),
        ("scale train", "Missing option '--replicas'"),
        ("set bound train", "Did you mean 'bounds'?"),
    ],
)
def test_wrong_words_are_wrong_usage(words: str, says: str) -> None:
    done = CliRunner().invoke(app, words.split(), env={"COLUMNS": "200"})
    assert done.exit_code == Exit.USAGE
    assert says in " ".join(done.stderr.replace("│", " ").split())


async def test_a_size_is_set_only_beside_the_size_that_is_expected() -> None:
    async with Server() as server:
        with pytest.raises(Refused, match="train has 2 workers now, not 3"):
            await scaled(server, grows=None, to=4, current=3)
        assert server.size == 2
        assert await scaled(server, grows=None, to=4, current=2) == Exit.DONE
        assert server.size == 4


async def test_a_size_of_zero_names_the_command_that_stops_a_job() -> None:
    async with Server() as server:
        with pytest.raises(Refused, match="at least one must stay: `mpijob-elastic suspend"):
            await scaled(server, grows=None, to=0)
