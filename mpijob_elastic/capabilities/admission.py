"""The optional capabilities of a job at admission: what each adds to an answer of the webhook.

This is the only place that names their halves at admission. Findings that need only the job's facts
come from `CapabilityFacts.findings`.
"""

from collections.abc import Callable

from mpijob_elastic.admission.allowed_sizes import SizesAdmission
from mpijob_elastic.admission.interface import (
    CapabilityAdmission,
    LookedUp,
    ReviewContext,
    ReviewHook,
)
from mpijob_elastic.admission.parking import ParkingAdmission
from mpijob_elastic.capabilities.avoided_nodes.admission import AvoidedNodesAdmission
from mpijob_elastic.capabilities.disruption.hook import Evictions
from mpijob_elastic.capabilities.gangs.admission import SERVED as POD_GROUPS
from mpijob_elastic.capabilities.gangs.admission import WATCHED as VOLCANO_QUEUES
from mpijob_elastic.capabilities.gangs.admission import GangAdmission
from mpijob_elastic.capabilities.kube_queue.admission import KubeQueueAdmission
from mpijob_elastic.capabilities.kueue.admission import TAKEN as QUEUE_LABELS
from mpijob_elastic.capabilities.kueue.admission import WATCHED as LOCAL_QUEUES
from mpijob_elastic.capabilities.kueue.admission import KueueAdmission
from mpijob_elastic.capabilities.run_policy.admission import RunPolicyAdmission
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.kube.writer import ApiWriter

ALL: tuple[CapabilityAdmission, ...] = (
    RunPolicyAdmission(),
    KubeQueueAdmission(),
    KueueAdmission(),
    GangAdmission(),
    AvoidedNodesAdmission(),
    SizesAdmission(),
    ParkingAdmission(),
)
# How labels of pods begin that another program reads as its own, and writes at admission.
TAKEN: tuple[str, ...] = (QUEUE_LABELS,)
# The objects that capabilities look up.
WATCHES: tuple[LookedUp, ...] = (VOLCANO_QUEUES, LOCAL_QUEUES)
# The resources of which capabilities ask if they are served.
SERVED: tuple[Resource, ...] = (*POD_GROUPS,)
# Hooks answer reviews at a secret path, because their answers change an object.
HOOKS = (Evictions,)
# Kinds of objects that only hooks review.
KINDS = frozenset(hook.KIND for hook in HOOKS)


def hooks(
    client: ApiWriter, context: ReviewContext, secret_path: Callable[[], str]
) -> tuple[ReviewHook, ...]:
    """Return the hooks that answer at a secret path."""
    return tuple(hook(client, context=context, secret_path=secret_path) for hook in HOOKS)
