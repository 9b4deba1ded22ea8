"""The names of gang schedulers: the marks by which each knows a pod, and its kinds in the API."""

from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.names import PREFIX

# On an MPIJob, written by users: the gang scheduler that takes the job's pods.
GANG = f"{PREFIX}gang"
# volcano.sh/apis: pkg/apis/scheduling/v1beta1/labels.go, pkg/apis/batch/v1alpha1/labels.go; the operator's too
VOLCANO = "volcano"
VOLCANO_GROUP = "scheduling.k8s.io/group-name"
VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"
VOLCANO_TASK = "volcano.sh/task-spec"
VOLCANO_PREEMPTABLE = "volcano.sh/preemptable"
# volcano.sh/volcano: pkg/scheduler/plugins/task-topology/util.go, on a PodGroup
VOLCANO_TOPOLOGY_PREFIX = "volcano.sh/task-topology-"
# sigs.k8s.io/scheduler-plugins: apis/scheduling/v1alpha1/types.go, a label
COSCHEDULING = "coscheduling"
COSCHEDULING_GROUP = "scheduling.x-k8s.io/pod-group"
# koordinator v1.8.0: apis/extension/coscheduling.go and elastic_quota.go, config/manager/scheduler-config.yaml. The
# group is a label of pods, the gang their annotation (later versions read only that), the policy one of a PodGroup.
KOORDINATOR = "koordinator"
KOORDINATOR_SCHEDULER = "koord-scheduler"
KOORDINATOR_GROUP = "pod-group.scheduling.sigs.k8s.io"
KOORDINATOR_GANG = "gang.scheduling.koordinator.sh/name"
KOORDINATOR_MATCH_POLICY = "gang.scheduling.koordinator.sh/match-policy"
# Labels: of an MPIJob, written by users, and of its pods; of pods.
KOORDINATOR_QUOTA = "quota.scheduling.koordinator.sh/name"
KOORDINATOR_PREEMPTIBLE = "quota.scheduling.koordinator.sh/preemptible"
# kubernetes v1.36: it knows pods by a field of their spec. The gates that its PodGroups take, and how they are served.
KUBERNETES = "kubernetes"
KUBERNETES_GATES = "the gates GenericWorkload and GangScheduling, and --runtime-config=scheduling.k8s.io/v1alpha2=true"
# By these labels and annotations each knows the pods of a gang.
GROUPS = frozenset({VOLCANO_GROUP, COSCHEDULING_GROUP, KOORDINATOR_GROUP})

VOLCANO_POD_GROUPS = Resource(group="scheduling.volcano.sh", version="v1beta1", plural="podgroups", kind="PodGroup")
VOLCANO_QUEUES = Resource(group="scheduling.volcano.sh", version="v1beta1", plural="queues", kind="Queue")
COSCHEDULING_POD_GROUPS = Resource(group="scheduling.x-k8s.io", version="v1alpha1", plural="podgroups", kind="PodGroup")
KOORDINATOR_POD_GROUPS = Resource(
    group="scheduling.sigs.k8s.io", version="v1alpha1", plural="podgroups", kind="PodGroup"
)
KUBERNETES_POD_GROUPS = Resource(group="scheduling.k8s.io", version="v1alpha2", plural="podgroups", kind="PodGroup")
