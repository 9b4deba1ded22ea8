import pytest

from upgrade import operators
from upgrade.operators import Kind


@pytest.mark.parametrize(
    ("image", "version", "kind"),
    [
        ("mpioperator/mpi-operator:0.2.3", "0.2.3", Kind.KNOWN),
        ("mpioperator/mpi-operator:v0.2.3", "0.2.3", Kind.KNOWN),
        ("host:5000/team/mpi-operator:v0.2.3@sha256:00", "0.2.3", Kind.KNOWN),
        ("mpi-operator:0.2.1", "0.2.1", Kind.OTHER),
        ("mpi-operator:v0.3.0", "0.3.0", Kind.ELASTIC),
        ("mpi-operator:0.10.0", "0.10.0", Kind.ELASTIC),
        ("mpi-operator:v1.0", "1.0", Kind.ELASTIC),
        ("mpi-operator:latest", "", Kind.UNKNOWN),
        ("mpi-operator", "", Kind.UNKNOWN),
        ("host:5000/mpi-operator", "", Kind.UNKNOWN),
        ("mpi-operator@sha256:00", "", Kind.UNKNOWN),
        ("kubeflow/training-operator:v1-855e096", "", Kind.ELASTIC),
        ("kubeflow/training-operator", "", Kind.ELASTIC),
    ],
)
def test_images(image: str, version: str, kind: Kind) -> None:
    found = operators.recognise("Deployment a/b", image)
    assert found is not None
    assert (found.version, found.kind) == (version, kind)


def test_other_images_are_no_operators() -> None:
    assert operators.recognise("Pod a/b", "my-mpi-operator-dashboard:0.2.3") is None


def test_the_command_of_a_newer_one_tells() -> None:
    found = operators.recognise("Pod a/b", "mpi-operator:latest", ("/opt/mpi-operator.v2beta1",))
    assert found is not None
    assert found.kind is Kind.ELASTIC
