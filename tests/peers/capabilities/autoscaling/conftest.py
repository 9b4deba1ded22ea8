"""What brings metrics to an HPA, or makes one."""

from pathlib import Path

import pytest

from tests.peers.built import peer
from tests.peers.capabilities.autoscaling.keda import Keda


@pytest.fixture(scope="session")
def prometheus_adapter() -> Path:
    """The program."""
    return peer("prometheus-adapter")


@pytest.fixture(scope="session")
def keda() -> Keda:
    """Both programs."""
    return Keda(operator=peer("keda-operator"), adapter=peer("keda-adapter"))
