"""Which CustomResourceDefinition of MPIJobs this is, and whether an upgrade has any business with it; pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from mpijob_elastic.kube.resources import MPI_JOBS
from upgrade.refusal import Refused

NAME = f"{MPI_JOBS.plural}.{MPI_JOBS.group}"

Crd = Mapping[str, Any]


class Form(StrEnum):
    """How a definition that we can work with says what a MPIJob is.

    legacy: made from v0.2.3's manifest (apiextensions v1beta1) before Kubernetes 1.22 and carried along since; it keeps
    unknown fields as a whole. structural: apiextensions v1, as Kubeflow and administrators have written it since.
    """

    LEGACY = "legacy"
    STRUCTURAL = "structural"


def form(crd: Crd) -> Form:
    """The form. Raises `Refused` where mpi-operator v0.2.3 is not what serves this definition."""
    index = v1_index(crd)
    _check_versions(crd)
    _check_v1(crd["spec"]["versions"][index])
    return Form.LEGACY if crd["spec"].get("preserveUnknownFields") else Form.STRUCTURAL


def v1_index(crd: Crd) -> int:
    """Where version v1 stands in spec.versions. Raises `Refused` where there is none."""
    for index, version in enumerate(crd["spec"]["versions"]):
        if version["name"] == MPI_JOBS.version:
            return index
    found = ", ".join(version["name"] for version in crd["spec"]["versions"])
    raise Refused(f"{NAME} has no version v1 but {found}; only mpi-operator v0.2.3 with MPIJob v1 can be made elastic")


def stored(crd: Crd) -> list[str]:
    """The versions in which objects may be stored: the one that is written now, and those of before."""
    now = [version["name"] for version in crd["spec"]["versions"] if version.get("storage")]
    return list(dict.fromkeys([*now, *crd.get("status", {}).get("storedVersions", [])]))


def _check_versions(crd: Crd) -> None:
    newer = [version for version in stored(crd) if version.startswith("v2")]
    if newer:
        raise Refused(
            f"{NAME} stores its objects as {', '.join(newer)}: an operator of that version, which is elastic itself, "
            "looks after them. Nothing is to be upgraded here"
        )


def _check_v1(version: Mapping[str, Any]) -> None:
    if not version.get("served"):
        raise Refused(f"{NAME} does not serve version v1; set served: true there if mpi-operator v0.2.3 is to be used")
    if _is_training_operators(version):
        raise Refused(
            f"{NAME} is the training-operator's (its mpiReplicaSpecs take any name): that operator is elastic itself. "
            "Nothing is to be upgraded here"
        )
    if "status" not in version.get("subresources", {}):
        raise Refused(
            f"{NAME} has no subresource status in version v1, so mpi-operator cannot record that a job has ended. "
            "Add `subresources: {status: {}}` to that version first"
        )


def _is_training_operators(version: Mapping[str, Any]) -> bool:
    """[training-operator] generates its schema from a Go map; mpi-operator's own names Launcher and Worker."""
    schema: Any = version.get("schema", {}).get("openAPIV3Schema", {})
    for name in ("spec", "mpiReplicaSpecs"):
        schema = schema.get("properties", {}).get(name, {})
    return isinstance(schema.get("additionalProperties"), Mapping)
