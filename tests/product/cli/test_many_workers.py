"""Pages on jobs of many workers: the same is said once, and how to see all."""

from datetime import UTC, datetime
from typing import Any

import pytest

from mpijob_elastic.cli.jobs import explain, table
from mpijob_elastic.diagnosis.explanation import diagnose
from mpijob_elastic.diagnosis.facts import Facts, Look
from tests import builders
from tests.product.cli import worlds
from tests.product.cli.worlds import at_rest, worker, workers
from tests.product.diagnosis.said import BUSY, IDLE

NOW = datetime.fromtimestamp(worlds.NOW, UTC)
REFUSED = Look(error="a policy says no")


def page(size: int, *, whole: bool = False, **changed: Any) -> list[str]:
    return table.details(at_rest(size, **changed), now=NOW, whole=whole)


@pytest.mark.parametrize("size", [table.FOLDED_ABOVE, table.FOLDED_ABOVE + 1, 300])
def test_the_page_of_a_large_job_folds_workers_that_are_alike(size: int) -> None:
    lines = page(size)
    named = [line for line in lines if line.startswith("train-worker-")]
    hosts = [line for line in lines if line.startswith("  train-worker-")]
    if size == table.FOLDED_ABOVE:
        assert (len(named), len(hosts)) == (size, size)
        assert not any(" more " in line for line in lines)
        return
    shown = table.SHOWN_ALIKE
    assert [line.split()[0] for line in named] == workers(*range(shown))
    assert len(hosts) == shown
    more = f"and {size - shown} more"
    lists_all = "`mpijob-elastic get train -n default -o wide` lists all"
    assert f"{more} workers like train-worker-0; {lists_all}" in lines
    assert f"  {more} lines" in lines


def test_a_worker_that_differs_is_never_folded() -> None:
    odd = {17: worker(17, phase="Failed"), 40: worker(40, phase="Pending")}
    lines = page(50, workers=[odd.get(index, worker(index)) for index in range(50)])
    named = [line.split()[0] for line in lines if line.startswith("train-worker-")]
    assert named == workers(0, 1, 2, 17, 40)
    assert any("and 45 more workers like train-worker-0" in line for line in lines)


def test_all_are_shown_where_all_are_asked_for() -> None:
    lines = page(300, whole=True)
    assert len([line for line in lines if line.lstrip().startswith("train-worker-")]) == 600
    assert not any(" more workers" in line or " more lines" in line for line in lines)


def said(size: int, looks: dict[str, Look]) -> list[str]:
    found = diagnose(builders.job(size), Facts(state="Running", looks=looks), now=builders.NOW)
    return explain.text(found)


def test_a_cause_that_many_workers_have_is_explained_once() -> None:
    lines = said(300, dict.fromkeys(builders.pods(*range(300)), REFUSED))
    assert len(lines) < 20
    text = " ".join(" ".join(lines).split())
    assert "The same of 299 more workers: j-worker-1, j-worker-2, j-worker-3," in text
    assert text.endswith("j-worker-8 and 291 more")
    assert sum("a policy says no" in line for line in lines) == 1  # in the headline


def test_a_right_that_is_missing_is_said_once_of_all_workers() -> None:
    looks = dict.fromkeys(builders.pods(*range(64)), REFUSED)
    text = " ".join(" ".join(said(300, looks)).split())
    assert text.count("a policy says no") == 1
    assert "exec looked only into" not in text


@pytest.mark.parametrize(
    ("look", "size", "told"),
    [
        pytest.param(BUSY, 4, "is training", id="they train"),
        pytest.param(REFUSED, 2, "is listed, and the launcher knows it", id="a trouble"),
    ],
)
def test_few_workers_are_explained_each(look: Look, size: int, told: str) -> None:
    for number, times in ((size, size), (size + 1, 1)):
        lines = said(number, dict.fromkeys(builders.pods(*range(number)), look))
        assert sum(told in line for line in lines) == times
        assert any(f"The same of {size} more workers" in line for line in lines) == (times == 1)


def test_other_causes_stand_between() -> None:
    looks = dict.fromkeys(builders.pods(*range(20)), REFUSED) | {"j-worker-7": BUSY}
    lines = said(20, looks)
    assert any("The same of 18 more workers" in line for line in lines)
    assert any(line.startswith("j-worker-7 is training") for line in lines)


@pytest.mark.parametrize(
    ("looks", "words"),
    [
        pytest.param(
            dict.fromkeys(builders.pods(*range(64)), IDLE),
            "none of the 64 workers that can be judged train; whether the other 236 of 300 do is "
            "not known: exec looked only into 64 other workers",
            id="none trains",
        ),
        pytest.param(
            dict.fromkeys(builders.pods(*range(64)), BUSY),
            "64 of 300 workers train; whether the others train is not known: exec looked only into "
            "64 other workers",
            id="all train",
        ),
        pytest.param(
            {},
            "300 of 300 listed; whether they train is not known: only exec can show that, and "
            "--no-exec was given",
            id="nobody looked",
        ),
    ],
)
def test_the_first_line_says_how_many_workers_were_looked_into(
    looks: dict[str, Look], words: str
) -> None:
    found = diagnose(builders.job(300), Facts(state="Running", looks=looks), now=builders.NOW)
    assert explain.headline(found) == f"{found.namespace}/j: Running, {words}"
