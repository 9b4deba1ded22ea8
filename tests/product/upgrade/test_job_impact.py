from dataclasses import replace

import pytest

from mpijob_elastic.model.job import Config, JobView, Launcher, LauncherPhase, Ref
from mpijob_elastic.model.memory import Memory
from upgrade import job_impact
from upgrade.job_impact import Readiness

REF = Ref(name="train", uid="1", resource_version="1")
STARTED = Launcher(ref=REF, phase=LauncherPhase.STARTED, mounts_discovery=False, created_at=1000.0)
CONFIG = Config(ref=REF, published=None, script=None, hostfile="", memory=Memory())
JOB = JobView(namespace="ml", ref=REF, replicas=2, slots=1, spec_elastic=True, launcher=STARTED)


@pytest.mark.parametrize(
    ("view", "readiness"),
    [
        (JOB, Readiness.RESTART),
        (replace(JOB, launcher=None), Readiness.LIVE),
        (replace(JOB, launcher=replace(STARTED, phase=LauncherPhase.WAITING)), Readiness.LIVE),
        (replace(JOB, launcher=replace(STARTED, phase=LauncherPhase.DELIVERING)), Readiness.LIVE),
        (replace(JOB, launcher=replace(STARTED, mounts_discovery=True)), Readiness.LIVE),
        (replace(JOB, launcher=replace(STARTED, mounts_discovery=True), config=CONFIG), Readiness.ELASTIC),
        (replace(JOB, launcher=replace(STARTED, phase=LauncherPhase.FINISHED)), Readiness.FINISHED),
        (replace(JOB, spec_elastic=False), Readiness.FIXED),
        (replace(JOB, finished=True), Readiness.FINISHED),
        (replace(JOB, deleting=True), Readiness.FINISHED),
        (replace(JOB, foreign="its pods carry labels"), Readiness.FOREIGN),
        (replace(JOB, notices="HandedOver: to another"), Readiness.FOREIGN),
    ],
)
def test_readiness(view: JobView, readiness: Readiness) -> None:
    assert job_impact.adoption(view, now=2000.0).readiness is readiness


def test_a_restart_says_what_it_costs_and_how_it_is_done() -> None:
    why = job_impact.adoption(JOB, now=1000.0 + 3 * 3600).why
    assert "has run for 3h" in why
    assert "last checkpoint" in why
    assert "mpijob-elastic upgrade adopt train -n ml" in why
