"""mpi-operator as a lab runs it: v0.2.3, which jobs are made elastic beside, and v0.3.0, which is elastic itself.

Both are built from their Go modules, unmodified (lab/binaries/mpi-operator-*). `process` runs them;
`deployment` installs v0.2.3 as its users do; `objects` makes the objects that v0.2.3 makes of a
job, for those who need them without a lab, from samples that v0.2.3 left.
"""

from enum import StrEnum

OPERATOR_IMAGE = "mpioperator/mpi-operator:v0.2.3"
KUBECTL_DELIVERY_IMAGE = "mpioperator/kubectl-delivery:v0.2.3"
# Where the init container leaves kubectl: kubectlMountPath in
# pkg/controllers/v1/mpi_job_controller.go.
KUBECTL_DIRECTORY = "/opt/kube"


class Release(StrEnum):
    """A release of mpi-operator that a lab has."""

    V0_2_3 = "v0.2.3"
    V0_3_0 = "v0.3.0"
