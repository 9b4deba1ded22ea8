"""Add a worker on a node that has none of the worker's files in memory and reads slowly, with and without a check of its start."""

import time
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from bench.real import transcript
from bench.real.timeline import Course, course
from bench.real.transcript import ENVIRONMENT, LIMIT, REST, within
from lab.cluster import Cluster
from lab.errors import LabError
from lab.layout import Layout
from lab.node.addresses import places
from lab.node.slow_disk import slow
from lab.training.job import TrainingJob, example
from lab.training.log import first_with

OLD, NEW = 2, 3
WARM, COLD = places(2)
SPEED = 50 * 10**6  # bytes a second that a container may read


class Check(StrEnum):
    """What imports the libraries in a new worker before it is Ready."""

    NOTHING = "nothing"
    STARTUP_PROBE = "startupProbe"
    POST_START = "postStart"


def run(cluster: Cluster, namespace: str, check: Check) -> Course:
    """Add a worker to a new job that trains with two. Raises LabError if that does not begin."""
    job = TrainingJob(cluster=cluster, namespace=namespace)
    _schedule_on(cluster, WARM.name)
    job.create(ENVIRONMENT, manifest=_with(check))
    if not within(lambda: first_with(job.log().steps, size=OLD, since=0) is not None):
        raise LabError(f"training did not begin within {LIMIT:.0f} s.")
    time.sleep(REST)
    _schedule_on(cluster, COLD.name)
    with slow(Layout.of(cluster.name), COLD, speed=SPEED):
        edited = transcript.edit(job, NEW)
        within(lambda: first_with(job.log().steps, size=NEW, since=edited) is not None)
    steps = job.log().steps
    return course(old=OLD, new=NEW, edited=edited, writes=(), sights=(), steps=steps)


def _with(check: Check) -> dict[str, Any]:
    """Return the example, whose workers have a startupProbe, with this check instead."""
    manifest = example()
    template = manifest["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    (container,) = template["spec"]["containers"]
    probe: Mapping[str, Any] = container.pop("startupProbe")
    if check is Check.STARTUP_PROBE:
        container["startupProbe"] = probe
    if check is Check.POST_START:
        container["lifecycle"] = {"postStart": {"exec": probe["exec"]}}
    return manifest


def _schedule_on(cluster: Cluster, node: str) -> None:
    """Have new pods scheduled on one of the two nodes only."""
    for place in (WARM, COLD):
        cluster.kubectl("uncordon" if place.name == node else "cordon", place.name)
