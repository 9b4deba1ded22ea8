"""Marks of operators that are elastic themselves: mpi-operator v0.3.0 and later, v2beta1, training-operator.

[v0.3.0] [training-operator] Such an operator puts a ConfigMap of its own making in place of the whole one, so our
annotation goes with its first write, and its discover_hosts.sh has another form than ours (getOrCreateConfigMap and
updateDiscoverHostsInConfigMap in their mpi_job_controller.go). It does so at each change of the ConfigMap, so where our
list stays, none is at work. The name of its program alone is no mark, because v0.2.3 has the same.
"""

import math
import re
from collections.abc import Collection

from mpijob_elastic import names
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.model.job import Config
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.pod import PodFacts
from mpijob_elastic.model.wire import Owned

# Field managers: client-go sends the program's name (`/opt/mpi-operator.v1` in the release's manifests).
_PROGRAMS = ("mpi-operator", "training-operator")


def marks(
    job: JobFacts, *, pods: Collection[PodFacts], config: Config | None, owner: Owned | None
) -> tuple[str, float]:
    """Return why another, elastic operator manages the job, and its last sign of life; "" if none does.

    The sign is a time in seconds since the epoch; infinite if it lasts as long as the objects. owner: of `config`.
    """
    versions = {each.api_version for each in (*(pod.metadata for pod in pods), *([owner] if owner else []))}
    if versions := versions - {MPI_JOBS.api_version}:
        return f"its objects belong to {', '.join(sorted(versions))}", math.inf
    if any(pod.of_training_operator for pod in pods):
        return "its pods carry labels of training-operator", math.inf
    made_at = max((pod.created_at for pod in pods if pod.foreign), default=None)
    memory = config and config.memory
    if (
        config
        and config.facts.script is not None
        and not config.signed
        and _has_their_form(config.facts.script, job.metadata.name)
    ):
        by_name = config.facts.writer.startswith(_PROGRAMS)
        if by_name or memory is None or made_at is not None:
            who = config.facts.writer or "another operator"
            why = f"its {names.KEY_DISCOVER_HOSTS} is written by {who}, in the form of an elastic operator"
            return why, max(config.facts.written_at, made_at or 0.0)
    if made_at is not None and memory is None:
        return "its pods carry labels of an operator newer than v0.2.3", made_at
    return "", math.inf


def _has_their_form(script: str, job: str) -> bool:
    """Tell whether an elastic operator wrote a script: no newline at its end; with GPUs also its launcher is a host."""
    launcher, worker = re.escape(names.launcher(job)), rf"{re.escape(job)}-worker-[0-9]+"
    slots = "[1-9][0-9]*"
    return bool(re.fullmatch(rf"#!/bin/sh(\necho {launcher}:{slots}\n)?(\necho {worker}:{slots})*", script))
