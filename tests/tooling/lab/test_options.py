"""Wrong options are refused before anything is started."""

import pytest

from lab.errors import LabError
from lab.options import Options
from lab.versions import KubernetesVersion


@pytest.mark.parametrize("nodes", [-1, 1001])
def test_numbers_of_nodes_that_are_refused(nodes: int) -> None:
    with pytest.raises(LabError, match="allowed are 0 to 1000"):
        Options(nodes=nodes)


@pytest.mark.parametrize("real_nodes", [-1, 9])
def test_numbers_of_real_nodes_that_are_refused(real_nodes: int) -> None:
    with pytest.raises(LabError, match=r"--real-nodes is .*; allowed are 0 to 8\."):
        Options(real_nodes=real_nodes)


@pytest.mark.parametrize("version", ["", "latest", "v1.34", "v2.0.0", "v1.34.4-rc.0"])
def test_versions_that_are_refused(version: str) -> None:
    with pytest.raises(LabError, match=r"as in v1\.34\.4"):
        Options(kubernetes_version=version)


def test_a_version_names_its_staging_modules() -> None:
    version = KubernetesVersion.parse("1.33.5")
    assert (str(version), version.staging) == ("v1.33.5", "v0.33.5")
