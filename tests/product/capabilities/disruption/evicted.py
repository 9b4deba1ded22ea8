"""A worker of the job `train` that somebody evicts, and the request for that."""

from typing import Any

from lab.operator import objects
from lab.operator.objects import Object
from mpijob_elastic.admission import review
from mpijob_elastic.admission.review import Request
from mpijob_elastic.capabilities.disruption import eviction
from mpijob_elastic.capabilities.disruption.eviction import EVICTION_MARK, Eviction
from tests.product.webhook.objects import body, mpi_job

READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "train-worker-0"}}


def worker(*, mark: str = "", status: Object = READY, **metadata: Any) -> Object:
    pod = objects.worker(mpi_job(), 0)
    annotations = {EVICTION_MARK: mark} if mark else {}
    return {
        **pod,
        "metadata": {**pod["metadata"], "uid": "w", "annotations": annotations, **metadata},
        "status": status,
    }


def requested(at: float) -> str:
    """The mark of a worker whose eviction is tried first."""
    return eviction.text(Eviction(released=False, at=at))


def released(at: float) -> str:
    """The mark of a worker that may be evicted."""
    return eviction.text(Eviction(released=True, at=at))


def request(*, options: Object | None = None, **fields: Any) -> Request:
    asked = EVICTION if options is None else EVICTION | {"deleteOptions": options}
    return review.parse(body(asked, **{"subResource": "eviction", **fields}))
