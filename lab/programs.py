"""The programs of a lab, found where a user may have them."""

from pathlib import Path

import msgspec

from lab.layout import cache_dir
from lab.versions import KubernetesVersion


class Programs(msgspec.Struct, frozen=True, kw_only=True):
    """Path of each program."""

    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kube_scheduler: Path
    kubectl: Path
    kwok: Path


def find(version: KubernetesVersion) -> Programs:
    """Return the programs."""
    directory = cache_dir() / f"bin-{version}"
    return Programs(**{field: directory / field.replace("_", "-") for field in Programs.__struct_fields__})
