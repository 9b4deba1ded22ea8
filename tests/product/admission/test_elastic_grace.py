"""How long ranks of elastic.sh may save: what the drain-timeout allows."""

from typing import Any

import pytest

from mpijob_elastic.admission import elastic_grace
from tests.product.webhook.answers import facts, verdict
from tests.product.webhook.objects import Object, mpi_job

FIELD = "spec.mpiReplicaSpecs.Launcher.template.spec.containers[0]"


def saving(grace: object = None, drain: str = "", **job: Any) -> Object:
    """A job whose ranks may take `grace` seconds to save, with that drain-timeout."""
    option = [] if grace is None else ["--grace", f"{grace}"]
    command = ["/etc/mpi/elastic.sh", *option, "--", "mpirun", "./train"]
    annotations = {"mpijob-elastic/drain-timeout": drain} if drain else {}
    return mpi_job(command=command, annotations={**annotations, **job.pop("more", {})}, **job)


@pytest.mark.parametrize(
    ("job", "longest"),
    [
        pytest.param(saving(51), 50, id="the default drain-timeout"),
        pytest.param(saving(51, "60s"), 50, id="the same, written"),
        pytest.param(saving(21, "30.9s"), 20, id="a part of a second"),
        pytest.param(saving(6, "15s"), 5, id="a short one"),
        pytest.param(saving(6, "1s"), 5, id="shorter than what is kept back"),
        pytest.param(saving(6, "0s"), 5, id="none"),
        pytest.param(saving(51, "60"), 50, id="one that cannot be read"),
    ],
)
def test_a_grace_beyond_the_drain_timeout_is_refused(job: Object, longest: int) -> None:
    [refusal] = elastic_grace.refusals(facts(job), None)
    assert refusal.field == FIELD
    assert f"is above {longest}, the most that" in refusal.message
    assert f"use --grace {longest}, or the annotation mpijob-elastic/drain-timeout" in str(refusal)


def test_the_line_to_type_is_told() -> None:
    assert [str(one) for one in verdict(saving(90)).refusals] == [
        f"{FIELD}: elastic.sh --grace 90 is above 50, the most that the drain-timeout (60 s) allows; "
        'use --grace 50, or the annotation mpijob-elastic/drain-timeout: "100s"'
    ]
    for mended in (saving(50), saving(90, "100s")):
        assert verdict(mended).allowed


def test_no_drain_timeout_is_advised_that_would_be_refused() -> None:
    [refusal] = elastic_grace.refusals(facts(saving(100_000)), None)
    assert str(refusal).endswith("use --grace 50")


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(saving(), id="no grace"),
        pytest.param(saving(50), id="the longest"),
        pytest.param(saving(5, "0s"), id="what the driver gives at least"),
        pytest.param(saving("$GRACE"), id="a grace that nobody can read"),
        pytest.param(
            saving(90, more={"mpijob-elastic/enabled": "false"}), id="no worker ever drains"
        ),
        pytest.param(mpi_job(command=["horovodrun", "--grace", "90"]), id="another program"),
    ],
)
def test_what_fits_or_is_not_known_passes(job: Object) -> None:
    assert [*elastic_grace.refusals(facts(job), None)] == []


@pytest.mark.parametrize(
    ("before", "after", "is_allowed"),
    [
        pytest.param(saving(90), saving(90, replicas=3), True, id="another edit"),
        pytest.param(saving(90), saving(80), True, id="a shorter grace that is too long yet"),
        pytest.param(saving(90), saving(90, "70s"), True, id="a longer drain-timeout"),
        pytest.param(saving(90), saving(91), False, id="an even longer grace"),
        pytest.param(saving(90, "100s"), saving(90), False, id="a shorter drain-timeout"),
        pytest.param(saving(50), saving(60), False, id="a longer grace"),
        pytest.param(mpi_job(), saving(60), False, id="another driver"),
        pytest.param(
            saving(60, more={"mpijob-elastic/enabled": "false"}),
            saving(60),
            False,
            id="it becomes elastic",
        ),
    ],
)
def test_only_what_an_edit_brings_in_is_refused(
    before: Object, after: Object, is_allowed: bool
) -> None:
    assert verdict(after, before).allowed is is_allowed
