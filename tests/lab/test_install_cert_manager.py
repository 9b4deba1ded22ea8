"""The overlay cert-manager as cert-manager's definitions see it; tests/peers/test_cert_manager.py runs cert-manager."""

import json
from pathlib import Path

import pytest

from lab.cluster import Cluster
from lab.install import Installed
from mpijob_elastic.install.installer import Plan
from mpijob_elastic.install.objects import Manifest
from mpijob_elastic.install.overlays import Overlay
from tests.lab.definitions import CERT_MANAGER, served
from tests.lab.hpa import STRICT, applied

pytestmark = [pytest.mark.lab, pytest.mark.thorough]


def certificates() -> list[Manifest]:
    """What the overlay asks of cert-manager."""
    manifests = Plan(overlays=(Overlay.CERT_MANAGER,)).manifests()
    return [one for one in manifests if one["apiVersion"].startswith("cert-manager.io/")]


def test_the_definitions_take_each_object_and_no_unknown_field(
    cluster: Cluster, installed: Installed, tmp_path: Path
) -> None:
    assert installed
    with served(cluster, CERT_MANAGER, tmp_path):
        assert len(certificates()) == 4
        for one in certificates():
            assert applied(cluster, json.dumps(one), *STRICT) == ""
            with pytest.raises(AssertionError, match="unknown field"):
                applied(cluster, json.dumps({**one, "spec": {**one["spec"], "renewBfore": "1h"}}), *STRICT)
