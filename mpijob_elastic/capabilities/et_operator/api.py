"""The names of et-operator (https://github.com/AliyunContainerService/et-operator) and of its kinds in the API."""

from functools import partial

from mpijob_elastic.kube.resources import Resource

_resource = partial(Resource, group="kai.alibabacloud.com", version="v1alpha1")
SCALE_INS = _resource(plural="scaleins", kind="ScaleIn")
SCALE_OUTS = _resource(plural="scaleouts", kind="ScaleOut")
# Where these are served, et-operator itself runs.
TRAINING_JOBS = _resource(plural="trainingjobs", kind="TrainingJob")

# In a request's `status.phase`, and the types of its conditions.
PENDING, SCALING, SUCCEEDED, FAILED = "Pending", "Scaling", "ScaleSucceeded", "ScaleFailed"
# Of a ScaleOut, in seconds, where it says none.
TIMEOUT = 60

# Ends the mark of a ScaleOut on its MPIJob (names.SCALED_BY) that was taken back after its timeout.
UNDONE = ":undone"
