"""A stand-in for mpi-operator v0.2.3: a test double, never installed.

It does to an MPIJob (kubeflow.org/v1) what that operator does: same objects, names, labels, conditions, Events, order,
rate limits and queue, and the same flaws. Nothing of the code under test but its transport is used, so that a mistake
there cannot hide behind the same mistake here. tests/lab/test_operator_replay.py holds it against recordings of the
real one; `MPI_OPERATOR_BIN` runs the real one instead (see process.py).

    sync.plan(job, what the caches show) -> steps      pure: sync, status, pods, shared, wire, limits, correlator
    caches -> queue -> plan -> writes, Events          IO: cache, queue, recorder, writes, controller

Known differences: no leader election and no health port; a pod template is passed on whole, where the operator drops
fields newer than Kubernetes 1.15; a job that would crash the operator (no launcher, no containers, no number of
workers) only fails its sync.
"""

KUBECTL_DELIVERY_IMAGE = "mpioperator/kubectl-delivery:v0.2.3"
# Both the stand-in and the real operator log it when their caches are filled and they begin to work.
STARTED = "Started workers"
