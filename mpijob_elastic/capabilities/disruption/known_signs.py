"""The signs that count by default: who sets each, and where that is written.

A sign stands here only if healthy nodes never have it. docs/spot.md shows this table
(`scripts/signs_table.py`).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from mpijob_elastic.capabilities.disruption.signs import NodeSigns, Sign, node_signs, parse

_MINUTE = 60.0


@dataclass(frozen=True, kw_only=True)
class KnownSign:
    """A sign that counts by default."""

    #: The sign, as the controller's option `--disruption-sign` takes it.
    text: str
    #: Who sets it, in words for a table.
    set_by: str
    #: Where that is written.
    source: str
    #: Seconds for which a condition must have been False: the time after which its setter acts.
    lasts: float | None = None
    #: The sign counts only while the node is cordoned.
    while_cordoned: bool = False
    #: A text in the message of a condition that makes it mere advice.
    advice: str = ""
    #: Workers may leave one after another: their node waits until it is drained, or may not go.
    can_wait: bool = False

    @property
    def sign(self) -> Sign:
        """The sign."""
        known = parse(self.text)
        return replace(
            known,
            lasts=known.lasts if self.lasts is None else self.lasts,
            while_cordoned=self.while_cordoned,
            advice=self.advice,
            can_wait=self.can_wait,
        )


_CLUSTER_AUTOSCALER = "https://github.com/kubernetes/autoscaler: utils/taints/taints.go"
_KARPENTER = "https://pkg.go.dev/sigs.k8s.io/karpenter@v1.15.0/pkg/apis/v1"
_TERMINATION_HANDLER = "https://pkg.go.dev/github.com/aws/aws-node-termination-handler/pkg/node"
_GKE = "https://cloud.google.com/kubernetes-engine/docs/concepts/handle-disruption-gpu-tpu"
_AUTO_DRAIN = "https://learn.microsoft.com/en-us/azure/aks/node-auto-drain"
_AKS_KARPENTER = "https://github.com/Azure/karpenter-provider-azure v1.14.2"
_ACK = "https://www.alibabacloud.com/help/en/container-service-for-kubernetes/latest/check-whether-a-preemptible-instance-is-about-to-expire"
_KUBERNETES = "https://pkg.go.dev/k8s.io/api@v0.37.2/core/v1#NodeConditionType"
_EKS = "https://docs.aws.amazon.com/eks/latest/userguide/node-repair.html"
_HYPERPOD = "https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-resiliency-node-labels.html"
_NVSENTINEL = "https://docs.nvidia.com/nvsentinel/runbooks/cordoned-nodes"
_DRIVER_UPGRADE = "https://pkg.go.dev/github.com/NVIDIA/k8s-operator-libs/pkg/upgrade"

_BY_TERMINATION_HANDLER = "aws-node-termination-handler with `--taint-node`"
_BY_EKS = "EKS node monitoring agent"

KNOWN = (
    KnownSign(
        # DeletionCandidateOfClusterAutoscaler is no decision yet.
        text="ToBeDeletedByClusterAutoscaler",
        set_by="cluster-autoscaler",
        source=_CLUSTER_AUTOSCALER,
        can_wait=True,
    ),
    KnownSign(text="karpenter.sh/disrupted", set_by="Karpenter", source=_KARPENTER, can_wait=True),
    KnownSign(
        text="karpenter.sh/disruption",
        set_by="Karpenter before v1",
        source="https://karpenter.sh/v0.37/concepts/disruption/",
        can_wait=True,
    ),
    KnownSign(
        # With a terminationGracePeriod of 0 it reboots the node without a drain.
        text="karpenter.sh/rebooting",
        set_by="Karpenter, node repair by reboot",
        source=_KARPENTER,
    ),
    KnownSign(
        text="aws-node-termination-handler/spot-itn",
        set_by=_BY_TERMINATION_HANDLER,
        source=_TERMINATION_HANDLER,
    ),
    KnownSign(
        text="aws-node-termination-handler/scheduled-maintenance",
        set_by=_BY_TERMINATION_HANDLER,
        source=_TERMINATION_HANDLER,
    ),
    KnownSign(
        text="aws-node-termination-handler/asg-lifecycle-termination",
        set_by=_BY_TERMINATION_HANDLER,
        source=_TERMINATION_HANDLER,
    ),
    KnownSign(
        text="aws-node-termination-handler/rebalance-recommendation",
        set_by=_BY_TERMINATION_HANDLER,
        source=_TERMINATION_HANDLER,
    ),
    KnownSign(
        text="cloud.google.com/impending-node-termination",
        set_by="GKE, on nodes with accelerators",
        source=_GKE,
    ),
    KnownSign(
        text="cloud.google.com/maintenance-window-started",
        set_by="GKE, some minutes before the node goes",
        source=_GKE,
    ),
    KnownSign(
        text="remediator.kubernetes.azure.com/unschedulable",
        set_by="AKS node auto-drain",
        source=_AUTO_DRAIN,
    ),
    KnownSign(
        text="remediator.aks.microsoft.com/unschedulable",
        set_by="AKS node auto-drain, formerly",
        source=_AUTO_DRAIN,
    ),
    KnownSign(
        text="condition:PreemptionScheduled",
        set_by="AKS, spot nodes",
        source=_AKS_KARPENTER,
        # The node may live on for days.
        advice="SpotRebalanceRecommendation",
    ),
    KnownSign(
        # Its setter acts at once, so there is nothing to wait for.
        text="condition:kubernetes.azure.com/NodeHealthy=False",
        set_by="AKS node auto-provisioning",
        source=_AKS_KARPENTER,
        lasts=0.0,
        can_wait=True,
    ),
    KnownSign(
        text="condition:InstanceExpired",
        set_by="Alibaba Cloud's ack-node-problem-detector",
        source=_ACK,
    ),
    KnownSign(
        text="condition:SpotPriceNodeReclaimNotification",
        set_by="Huawei CCE node problem detector",
        source="https://support.huaweicloud.com/intl/en-us/usermanual-cce/cce_10_0132.html",
    ),
    KnownSign(
        text="node.willDelete",
        set_by="Volcengine VKE",
        source="https://www.volcengine.com/docs/6460/1358690",
        can_wait=True,
    ),
    KnownSign(
        text="amd-gpu-unhealthy",
        set_by="AMD GPU operator, remediation of a node",
        source="https://github.com/ROCm/gpu-operator v1.5.1-beta.0",
        can_wait=True,
    ),
    KnownSign(
        text="medik8s.io/drain",
        set_by="node-maintenance-operator",
        source="https://github.com/medik8s/node-maintenance-operator v0.20.1",
        can_wait=True,
    ),
    KnownSign(
        text="nvsentinel.dgxc.nvidia.com/external-remediation",
        set_by="NVSentinel, before another system repairs the node",
        source=_NVSENTINEL,
    ),
    KnownSign(
        # Any value means a faulty node. A success is left out: the label may outlive the fault.
        text=(
            "label:dgxc.nvidia.com/nvsentinel-state=quarantined,draining,drain-succeeded,"
            "drain-failed,remediating,remediation-failed"
        ),
        set_by="NVSentinel",
        source=_NVSENTINEL,
        can_wait=True,
    ),
    KnownSign(
        # Unschedulable alone means that the node is being checked, before it gets work.
        text=(
            "label:sagemaker.amazonaws.com/node-health-status=UnschedulablePendingReplacement,"
            "UnschedulablePendingReboot"
        ),
        set_by="SageMaker HyperPod, before it replaces or reboots the node",
        source=_HYPERPOD,
    ),
    KnownSign(
        # In the states before these the operator waits for jobs, if its administrator wants that;
        # node-maintenance-required includes such a wait. In those after these the new driver runs.
        text=(
            "label:nvidia.com/gpu-driver-upgrade-state=pod-deletion-required,drain-required,"
            "pod-restart-required"
        ),
        set_by="NVIDIA GPU operator, upgrade of the driver",
        source=_DRIVER_UPGRADE,
        can_wait=True,
    ),
    KnownSign(
        text="condition:AcceleratedHardwareReady=False",
        set_by=_BY_EKS,
        source=_EKS,
        lasts=10 * _MINUTE,
        can_wait=True,
    ),
    *(
        KnownSign(
            text=f"condition:{kind}=False",
            set_by=_BY_EKS,
            source=_EKS,
            lasts=30 * _MINUTE,
            can_wait=True,
        )
        for kind in ("ContainerRuntimeReady", "KernelReady", "NetworkingReady", "StorageReady")
    ),
    # MaintenancePlanned may be days ahead.
    KnownSign(
        text="condition:DrainInProgress",
        set_by="administrators, since Kubernetes 1.37",
        source=_KUBERNETES,
        can_wait=True,
    ),
    KnownSign(
        text="condition:GracefulNodeShutdownInProgress",
        set_by="administrators, since Kubernetes 1.37",
        source=_KUBERNETES,
    ),
    KnownSign(
        # It stays True after the drain, while the node may be used again.
        text="condition:DrainScheduled",
        set_by="draino",
        source="https://github.com/planetlabs/draino",
        while_cordoned=True,
        can_wait=True,
    ),
)


def signs(*, more: Iterable[str] = (), ignored: Iterable[str] = ()) -> NodeSigns:
    """Return the known signs and `more`, given as texts (see `parse`). Raises BadSign."""
    known = [one.sign for one in KNOWN]
    return node_signs((*known, *map(parse, more)), ignored=ignored)
