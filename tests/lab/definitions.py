"""Definitions of other projects, out of their Go modules."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from lab.cluster import Cluster
from lab.errors import LabError
from lab.golang import download
from tests.lab.upgrades import established


@dataclass(frozen=True, kw_only=True)
class Release:
    """A release: its module with the version, the module's checksum, and the files of the definitions."""

    module: str
    checksum: str
    files: Sequence[str]


# The release that lab/binaries/cert-manager builds.
CERT_MANAGER = Release(
    module="github.com/cert-manager/cert-manager@v1.21.2",
    checksum="h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=",
    files=[
        f"deploy/crds/cert-manager.io_{kind}.yaml"
        for kind in ("certificates", "certificaterequests", "issuers", "clusterissuers")
    ],
)
# The release that lab/binaries/keda builds.
KEDA = Release(
    module="github.com/kedacore/keda/v2@v2.20.2",
    checksum="h1:SR60v8uIcelbveS8n/1jcl8tLdBBIbHMxmdOHw8tKqA=",
    files=[
        f"config/crd/bases/{kind}.yaml"
        for kind in (
            "keda.sh_scaledobjects",
            "keda.sh_scaledjobs",
            "keda.sh_triggerauthentications",
            "keda.sh_clustertriggerauthentications",
            "eventing.keda.sh_cloudeventsources",
            "eventing.keda.sh_clustercloudeventsources",
        )
    ],
)


@contextmanager
def served(cluster: Cluster, release: Release, directory: Path) -> Iterator[None]:
    """Have the API server serve the definitions as long as the block lasts; skip the test if they cannot be had.

    `directory` is for the Go tool to run in, which no module may claim.
    """
    try:
        found = download(release.module, directory=directory)
    except LabError as error:
        pytest.skip(f"the definitions of {release.module} cannot be had: {error}")
    assert found["Sum"] == release.checksum
    for name in release.files:
        file = Path(found["Dir"]) / name
        cluster.kubectl("apply", "--server-side", "-f", str(file))
        established(cluster, f"crd/{yaml.safe_load(file.read_text())['metadata']['name']}")
    yield
    for name in release.files:
        cluster.kubectl("delete", "-f", str(Path(found["Dir"]) / name))
