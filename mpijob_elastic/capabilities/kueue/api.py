"""The names of Kueue (apis/../constants and pkg/controller/constants), and its kinds in the API."""

from mpijob_elastic.kube.resources import Resource

# On an MPIJob, written by users.
LABEL_QUEUE = "kueue.x-k8s.io/queue-name"
LABEL_PRIORITY_CLASS = "kueue.x-k8s.io/priority-class"
# On an MPIJob, written by MultiKueue in the cluster that it has chosen: an annotation, before Kueue 0.19 a label. And
# its value of spec.managedBy in the cluster where the user created the job.
PREBUILT = "kueue.x-k8s.io/prebuilt-workload-name"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
# On a Workload that MultiKueue has sent to the cluster that it has chosen.
MULTIKUEUE_ORIGIN = "kueue.x-k8s.io/multikueue-origin"
# On a Workload: Kueue tells the jobs that it preempts for it.
LABEL_JOB_UID = "kueue.x-k8s.io/job-uid"

# Kueue before 0.15 serves v1beta1 alone, and is not supported.
WORKLOADS = Resource(group="kueue.x-k8s.io", version="v1beta2", plural="workloads", kind="Workload")
FLAVORS = Resource(group="kueue.x-k8s.io", version="v1beta2", plural="resourceflavors", kind="ResourceFlavor")
WORKLOAD_PRIORITIES = Resource(
    group="kueue.x-k8s.io", version="v1beta2", plural="workloadpriorityclasses", kind="WorkloadPriorityClass"
)
