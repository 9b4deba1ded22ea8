"""ScaleIns and ScaleOuts of a job, as they were read."""

from dataclasses import replace
from typing import Any

from mpijob_elastic.capabilities import told
from mpijob_elastic.capabilities.et_operator import EtOperator
from mpijob_elastic.capabilities.et_operator.facts import (
    SCALE_INS,
    SCALE_OUTS,
    SCALING,
    TIMEOUT,
    ScaleRequest,
)
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.json_parts import Owned
from tests.builders import NOW, but, job, pods


def asking(name: str, *, owned: bool = True, **facts: Any) -> ScaleRequest:
    """One that its job controls."""
    uid = "uid-of-j" if owned else ""
    metadata = Owned(
        name=name,
        namespace="default",
        uid=f"uid-of-{name}",
        resource_version="3",
        job="j",
        job_uid=uid,
    )
    return ScaleRequest(metadata=metadata, **{"created_at": NOW - 10, "timeout": TIMEOUT, **facts})


def scale_in(*indices: int, name: str = "in", **facts: Any) -> ScaleRequest:
    """One that names these workers."""
    return asking(name, resource=SCALE_INS, names=pods(*indices), **facts)


def scale_out(count: int, *, name: str = "out", **facts: Any) -> ScaleRequest:
    return asking(name, resource=SCALE_OUTS, count=count, **facts)


def started(one: ScaleRequest, *indices: int, ago: float = 1.0) -> ScaleRequest:
    """The same, while it scales these workers."""
    return but(one, phase=SCALING, pods=pods(*indices), started_at=NOW - ago)


def asked(
    *requests: ScaleRequest, size: int = 3, by: str = "", parked: tuple[int, ...] = (), **facts: Any
) -> JobView:
    """A job of that size with these requests, whose size was last set by this one; the workers are as `facts` say."""
    view = but(job(size), **{"parked": parked, "scaled_by": by, **facts})
    skipped = sum(index < size for index in parked)
    view = replace(but(view, facts=but(view.facts, replicas=size)), replicas=size - skipped)
    return told(view, seen=[*view.capabilities, EtOperator.of(view, requests)])
