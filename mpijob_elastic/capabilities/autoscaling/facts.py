"""Autoscale: what a job is scaled by, as its annotation says: an HPA, or idle nodes; pure.

    cpu=70                                      CPU of the workers, in percent of their requests
    external:train_queue_length=100             an external metric, so much for each worker
    external:train_queue_length{queue=a}=100    the same with labels
    fill                                        no HPA: idle nodes are filled (see `size`)
    fill,worth=0.3                              the same, while a worker more is worth so much

https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/horizontal-pod-autoscaler-v2/
"""

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube.resources import MPI_JOBS, Resource
from mpijob_elastic.model import phrases
from mpijob_elastic.model.job_facts import CapabilityFacts, JobFacts, SizeRule
from mpijob_elastic.model.policy import Annotation

# On an MPIJob, written by users.
SCALE_TIMEOUT = f"{names.PREFIX}scale-timeout"
AUTOSCALE = f"{names.PREFIX}autoscale"
TOLERANCE = f"{names.PREFIX}autoscale-tolerance"
# The first minor version of Kubernetes 1 whose HPAs have a tolerance: before, the API server drops
# the field (kube_features.go, HPAConfigurableTolerance).
TOLERANCE_SINCE = 35
GROW_AFTER_LOSS = f"{names.PREFIX}grow-after-loss"
# Seconds after a loss for which a job that fills does not grow, unless it says how many.
GROWS_AFTER = 300.0
# The worth that a worker must have for a job that fills to keep it, unless it says how much.
WORTH = 0.5
# v2 is the first version with external metrics and a behaviour.
AUTOSCALERS = Resource(
    group="autoscaling",
    version="v2",
    plural="horizontalpodautoscalers",
    kind="HorizontalPodAutoscaler",
)

Spec = Mapping[str, Any]
ALLOWED = (
    '"fill", "fill,worth=0.5" (0 to 1), "cpu=70" (percent) or "external:METRIC=100", or with '
    'labels "external:METRIC{queue=train}=100"'
)
# Seconds between two steps of an HPA. A change of size costs training some seconds: so an HPA makes
# one step at a time, with a pause in which the new workers can start.
PERIOD = 120
# The API server takes no longer period (pkg/apis/autoscaling/validation).
LONGEST_PERIOD = 1800
# Seconds for which the smallest size wanted holds (up), and the largest (down).
UP_WINDOW, DOWN_WINDOW = 60, 600

_FILL = re.compile(r"fill(?:,worth=(?P<worth>0(?:\.[0-9]{1,3})?|1(?:\.0{1,3})?))?")
_CPU = re.compile(r"cpu=(?P<percent>[1-9][0-9]{0,4})")
_LABEL = r"[A-Za-z0-9_./-]{1,253}=[A-Za-z0-9_.-]{0,63}"
_EXTERNAL = re.compile(
    r"external:(?P<name>[A-Za-z0-9_.:|-]{1,253})"
    rf"(?:\{{(?P<labels>{_LABEL}(?:,{_LABEL}){{0,9}})\}})?"
    r"=(?P<value>[1-9][0-9]{0,11})"
)


@dataclass(frozen=True, kw_only=True)
class Autoscale:
    """What the workers of a job are scaled by."""

    #: Idle nodes; nothing else counts then.
    fill: bool = False
    #: What a worker more must be worth (see `worth`) for the job to keep it; 0 if any may stay.
    worth: float = WORTH
    #: The external metric; "" for the CPU of the workers.
    name: str = ""
    #: The labels that select the external metric.
    labels: Mapping[str, str] = field(default_factory=dict)
    #: The target: of the metric for each worker, or of the CPU in percent.
    value: int = 0

    @property
    def metric(self) -> Spec:
        """The metric as an HPA has it."""
        if not self.name:
            target = {"type": "Utilization", "averageUtilization": self.value}
            return {"type": "Resource", "resource": {"name": "cpu", "target": target}}
        metric = {"name": self.name} | (
            {"selector": {"matchLabels": dict(self.labels)}} if self.labels else {}
        )
        target = {"type": "AverageValue", "averageValue": str(self.value)}
        return {"type": "External", "external": {"metric": metric, "target": target}}


def parse(text: str) -> Autoscale | None:
    """Return the request in the annotation; None if the annotation cannot be read."""
    if found := _FILL.fullmatch(text):
        return Autoscale(fill=True, worth=float(found["worth"] or WORTH))
    if found := _CPU.fullmatch(text):
        return Autoscale(value=int(found["percent"]))
    if found := _EXTERNAL.fullmatch(text):
        labels = dict(label.split("=", 1) for label in (found["labels"] or "").split(",") if label)
        return Autoscale(name=found["name"], labels=labels, value=int(found["value"]))
    return None


_PERCENT = r"(?:100|[0-9]{1,2}(?:\.[0-9])?)%"
_TOLERANCES = re.compile(
    rf"(?P<both>{_PERCENT})|up=(?P<up>{_PERCENT})(?:,down=(?P<then>{_PERCENT}))?|"
    rf"down=(?P<down>{_PERCENT})"
)


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """By how much a metric may be off its target before an HPA acts, as quantities; "" if unsaid.

    An HPA acts once the metric is off by more than this part of the target: 0.05 is 5 %.
    """

    #: Above the target.
    up: str = ""
    #: Below the target.
    down: str = ""


def parse_tolerance(text: str) -> Tolerance | None:
    """Return the tolerance in the annotation; None if the annotation cannot be read."""
    found = _TOLERANCES.fullmatch(text)
    if found is None:
        return None
    up, down = found["both"] or found["up"], found["both"] or found["then"] or found["down"]
    return Tolerance(up=_part(up), down=_part(down))


def _part(percent: str | None) -> str:
    """Return a percentage as a quantity, such as "0.05"; "" for None."""
    return f"{Decimal(percent.removesuffix('%')) / 100}" if percent else ""


@dataclass(frozen=True, kw_only=True)
class Scaling(CapabilityFacts):
    """What a job asks for besides its size."""

    #: What the job is scaled by, None for nothing.
    autoscale: Autoscale | None = None
    #: Seconds after which a size that cannot be reached is set back, None for never.
    scale_timeout: float | None = None
    #: The tolerance of the HPA, None for its default.
    tolerance: Tolerance | None = None
    #: Seconds after a loss in which a job that fills is not made larger than it was before; None
    #: for GROWS_AFTER.
    grow_after_loss: float | None = None
    #: We were the last to set the size.
    sized_by_us: bool = False

    @property
    def pause_after_loss(self) -> float:
        """Seconds after a loss in which a job that fills is not made larger than it was before."""
        return GROWS_AFTER if self.grow_after_loss is None else self.grow_after_loss

    @property
    def size_rule(self) -> SizeRule:
        """How the size is set: by what scales the job, or back to one that can be reached.

        `autoscale` needs no warning of its own at admission: `findings` says that it has no effect.
        """
        return SizeRule(
            chooses=self.autoscale is not None,
            needs_elastic=self.scale_timeout is not None,
            cause="fill" if self.fill else "timeout",
        )

    @property
    def fill(self) -> bool:
        """True if the job fills idle nodes."""
        return self.autoscale is not None and self.autoscale.fill

    def findings(self, job: JobFacts) -> Iterable[str]:
        """Yield a warning for each annotation that can do nothing for the job."""
        if self.autoscale and not job.acts_elastic:
            yield f"{AUTOSCALE} has no effect: this job is not elastic"
        if self.tolerance and (self.autoscale is None or self.fill):
            yield f"{TOLERANCE} has no effect: {AUTOSCALE} asks for no HPA"
        if self.grow_after_loss is not None and not self.fill:
            yield f"{GROW_AFTER_LOSS} has no effect without {AUTOSCALE}: fill"


def scaling(job: JobFacts) -> Scaling:
    """Return the scaling that a job asks for, perhaps none."""
    return job.of(Scaling) or Scaling()


def spec(
    asked: Autoscale,
    job: str,
    *,
    least: int,
    most: int,
    paused: bool,
    sizes: Sequence[int] = (),
    tolerance: Tolerance | None = None,
    pause: float = 0.0,
) -> Spec:
    """Return the spec of a job's HPA.

    paused: the HPA measures and changes nothing. sizes: those that the job may have. A step is the
    largest gap between two sizes: a smaller step never leads down, because every size is rounded
    up. tolerance: None where the API server has no such field. pause: the least seconds between two
    steps; the HPA gets it in whole periods, so that its spec seldom changes.
    """
    tolerance = tolerance or Tolerance()
    least, most = (sizes[0], sizes[-1]) if sizes else (least, most)
    gap = max((after - before for before, after in pairwise(sizes)), default=1)
    periods = min(max(math.ceil(pause / PERIOD), 1), LONGEST_PERIOD // PERIOD)
    step = {"type": "Pods", "value": gap, "periodSeconds": periods * PERIOD}
    select = "Disabled" if paused else "Max"
    target = {"apiVersion": MPI_JOBS.api_version, "kind": MPI_JOBS.kind, "name": job}
    return {
        "scaleTargetRef": target,
        "minReplicas": least,
        "maxReplicas": most,
        "metrics": [asked.metric],
        "behavior": {
            "scaleUp": {
                "stabilizationWindowSeconds": UP_WINDOW,
                "selectPolicy": select,
                "policies": [step],
                **({"tolerance": tolerance.up} if tolerance.up else {}),
            },
            "scaleDown": {
                "stabilizationWindowSeconds": DOWN_WINDOW,
                "selectPolicy": select,
                "policies": [step],
                **({"tolerance": tolerance.down} if tolerance.down else {}),
            },
        },
    }


def digest(wanted: Spec) -> str:
    """Return the digest of a spec.

    The HPA keeps the digest as an annotation, because the API server adds defaults to the spec.
    """
    return hashlib.sha256(msgspec.json.encode(wanted)).hexdigest()[:16]


def _scale_timeout(text: str) -> float | None:
    seconds = phrases.parse_duration(text)
    return seconds if seconds and 1.0 <= seconds <= 24 * 3600.0 else None


def _grow_after_loss(text: str) -> float | None:
    seconds = phrases.parse_duration(text)
    return seconds if seconds is not None and seconds <= 24 * 3600.0 else None


ANNOTATIONS = {
    "scale_timeout": Annotation(
        SCALE_TIMEOUT, _scale_timeout, 'a duration from 1s to 24h, such as "10m"'
    ),
    "autoscale": Annotation(AUTOSCALE, parse, ALLOWED),
    "tolerance": Annotation(
        TOLERANCE, parse_tolerance, 'a percentage up to 100%, such as "5%", or "up=2%,down=20%"'
    ),
    "grow_after_loss": Annotation(
        GROW_AFTER_LOSS, _grow_after_loss, 'a duration from 0s to 24h, such as "10m"'
    ),
}
