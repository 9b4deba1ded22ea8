"""The form of the MPIJob definition, and the check that an upgrade supports it; pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from mpijob_elastic.kube.resources import MPI_JOBS
from upgrade.refusal import Refused

NAME = f"{MPI_JOBS.plural}.{MPI_JOBS.group}"

Crd = Mapping[str, Any]


class Form(StrEnum):
    """The form of a supported definition.

    legacy: created from v0.2.3's manifest (apiextensions v1beta1) before Kubernetes 1.22 and kept since; it stores all
    unknown fields. structural: apiextensions v1, as Kubeflow and administrators have written it since.
    """

    LEGACY = "legacy"
    STRUCTURAL = "structural"


def form(crd: Crd) -> Form:
    """Return the form. Raises `Refused` if the definition does not belong to mpi-operator v0.2.3."""
    index = v1_index(crd)
    _check_versions(crd)
    _check_v1(crd["spec"]["versions"][index])
    return Form.LEGACY if crd["spec"].get("preserveUnknownFields") else Form.STRUCTURAL


def v1_index(crd: Crd) -> int:
    """Return the index of version v1 in spec.versions. Raises `Refused` if there is none."""
    for index, version in enumerate(crd["spec"]["versions"]):
        if version["name"] == MPI_JOBS.version:
            return index
    found = ", ".join(version["name"] for version in crd["spec"]["versions"])
    raise Refused(f"{NAME} has no version v1, only {found}; an upgrade needs mpi-operator v0.2.3 with MPIJob v1")


def stored(crd: Crd) -> list[str]:
    """Return the versions in which objects may be stored: the current storage version, and former ones."""
    now = [version["name"] for version in crd["spec"]["versions"] if version.get("storage")]
    return list(dict.fromkeys([*now, *crd.get("status", {}).get("storedVersions", [])]))


def _check_versions(crd: Crd) -> None:
    newer = [version for version in stored(crd) if version.startswith("v2")]
    if newer:
        raise Refused(
            f"{NAME} stores its objects as {', '.join(newer)}: an operator of that version manages them and is elastic "
            "itself. Do not upgrade this cluster"
        )


def _check_v1(version: Mapping[str, Any]) -> None:
    if not version.get("served"):
        raise Refused(f"{NAME} does not serve version v1; set served: true there to use mpi-operator v0.2.3")
    if _is_training_operators(version):
        raise Refused(
            f"{NAME} is the training-operator's (its mpiReplicaSpecs take any name): that operator is elastic itself. "
            "Do not upgrade this cluster"
        )
    if "status" not in version.get("subresources", {}):
        raise Refused(
            f"{NAME} has no status subresource in version v1, so mpi-operator cannot record that a job has ended. "
            "Add `subresources: {status: {}}` to that version first"
        )


def _is_training_operators(version: Mapping[str, Any]) -> bool:
    """[training-operator] generates its schema from a Go map; mpi-operator's own names Launcher and Worker."""
    schema: Any = version.get("schema", {}).get("openAPIV3Schema", {})
    for name in ("spec", "mpiReplicaSpecs"):
        schema = schema.get("properties", {}).get(name, {})
    return isinstance(schema.get("additionalProperties"), Mapping)
