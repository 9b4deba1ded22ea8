"""Shorthands for explanations in tests."""

from typing import Any

from mpijob_elastic.diagnosis.explanation import diagnose
from mpijob_elastic.diagnosis.facts import Facts, Finding, Look
from mpijob_elastic.model.job import JobView
from tests.builders import NOW, pods

# As horovod 0.28 prints it (stall_inspector.cc), through horovodrun.
STALLED = (
    b"[0]<stderr>:[2026-11-26 13:07:30.123456: W /tmp/horovod/horovod/common/stall_inspector.cc:107] One or more "
    b"tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder "
    b"of ranks for more than 60 seconds. This may indicate that different ranks are trying to submit different tensors "
    b"or that only subset of ranks is submitting tensors, which will cause deadlock. \n"
    b"[0]<stderr>:Missing ranks:\n"
    b"[1]<stdout>:7: [a line of another rank]\n"
    b"[0]<stderr>:1: [allreduce.conv1, allreduce.conv2, allreduce.fc ...]\n"
    b"[0]<stderr>:2!: [allreduce.conv1]"
)
BUSY, IDLE = Look(processes=("python3",)), Look()


def of_worker(view: JobView, index: int, **facts: Any) -> Finding:
    """Return the cause of that worker."""
    explanation = diagnose(view, Facts(**facts), now=NOW)
    [pod] = pods(index)
    [found] = [worker.cause for worker in explanation.workers if worker.name == pod]
    return found


def of_job(view: JobView, **facts: Any) -> dict[str, Finding]:
    """Return the findings on the job, by cause."""
    found = diagnose(view, Facts(**facts), now=NOW).job
    by_cause = {finding.cause: finding for finding in found}
    assert len(by_cause) == len(found)
    return by_cause
