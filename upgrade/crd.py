"""Make the MPIJob definition scalable, and revert that; pure, from object to object.

Version v1 gets the scale subresource, printer columns, and the field of the selector if a
structural schema would drop it. Everything else stays: other versions, columns, categories, short
names, conversion, schemas.

An API server that serves only apiextensions v1 accepts a definition in the legacy form (`Form`)
while it keeps that form: subresources and columns may change, and nothing is pruned. A structural
definition can never go back, for preserveUnknownFields "cannot [be] set to true" again; so that
change is left to administrators.

Its field managers and kubectl's annotation say who else writes it. The versions are one field for
server-side apply: whoever applies one version applies all of them.
https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
"""

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, cast

from mpijob_elastic import names
from mpijob_elastic.install import Refused
from mpijob_elastic.kube.resources import MPI_JOBS

NAME = f"{MPI_JOBS.plural}.{MPI_JOBS.group}"

Crd = Mapping[str, Any]
Version = Mapping[str, Any]
Schema = Mapping[str, Any]

PRESERVE = "x-kubernetes-preserve-unknown-fields"
# [training-operator] has the selector at this path too.
SCALE = {
    "specReplicasPath": ".spec.mpiReplicaSpecs.Worker.replicas",
    "statusReplicasPath": ".status.replicaStatuses.Worker.active",
    "labelSelectorPath": ".status.replicaStatuses.Worker.selector",
}


def _column(name: str, kind: str, path: str, description: str) -> Mapping[str, Any]:
    return {"name": name, "type": kind, "jsonPath": path, "description": description}


_PHASE = _column(
    "Phase", "string", f".metadata.annotations.{names.PHASE}", "What is under way; empty at rest"
)
# A column shows the first match of its path, and Created stays True for ever, so State is the
# condition added last.
COLUMNS: tuple[Mapping[str, Any], ...] = (
    _column(
        "State",
        "string",
        ".status.conditions[-1:].type",
        "The condition that mpi-operator added last",
    ),
    _column("Desired", "integer", SCALE["specReplicasPath"], "Workers wanted"),
    _column("Active", "integer", SCALE["statusReplicasPath"], "Workers that run"),
    _PHASE,
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
)
# The column that earlier versions have in the place of Phase.
_FORMER = _column(
    "Elastic",
    "string",
    f".metadata.annotations.{names.ENABLED}",
    "The job's annotation; if empty, the launcher's command decides, see mpijob-elastic get",
)
# Where `kubectl apply` and Argo CD keep the manifest that they applied last.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# The managers of kubectl's commands that change an object once.
_ONCE = frozenset({"kubectl-create", "kubectl-edit", "kubectl-patch"})
# The definition of v0.2.3's manifest in apiextensions v1, scalable.
IN_V1 = "docs/examples/mpijob-definition.yaml"


class Form(StrEnum):
    """The form of a supported definition."""

    #: Created from v0.2.3's manifest (apiextensions v1beta1) before Kubernetes 1.22 and kept since;
    #: it stores all unknown fields.
    LEGACY = "legacy"
    #: apiextensions v1, as Kubeflow and administrators have written it since.
    STRUCTURAL = "structural"


def form(crd: Crd) -> Form:
    """Return the form.

    Raises `Refused` if the definition does not belong to mpi-operator v0.2.3.
    """
    version = _v1(crd)
    newer = [name for name in stored(crd) if name.startswith("v2")]
    if newer:
        raise Refused(
            f"{NAME} stores its objects as {', '.join(newer)}: an operator of that version manages "
            "them and is elastic itself. Do not upgrade this cluster"
        )
    if not version.get("served"):
        raise Refused(
            f"{NAME} does not serve version v1; set served: true there to use mpi-operator v0.2.3"
        )
    # [training-operator] generates its schema from a Go map; mpi-operator's own names Launcher and
    # Worker.
    schema: Any = version.get("schema", {}).get("openAPIV3Schema", {})
    for name in ("spec", "mpiReplicaSpecs"):
        schema = schema.get("properties", {}).get(name, {})
    if isinstance(schema.get("additionalProperties"), Mapping):
        raise Refused(
            f"{NAME} is the training-operator's (its mpiReplicaSpecs take any name): that operator "
            "is elastic itself. Do not upgrade this cluster"
        )
    if "status" not in version.get("subresources", {}):
        raise Refused(
            f"{NAME} has no status subresource in version v1, so mpi-operator cannot record that a "
            "job has ended. Add `subresources: {status: {}}` to that version first"
        )
    return Form.LEGACY if crd["spec"].get("preserveUnknownFields") else Form.STRUCTURAL


def stored(crd: Crd) -> list[str]:
    """Return the versions in which objects may be stored.

    They are the current storage version, and former storage versions.
    """
    now = [version["name"] for version in crd["spec"]["versions"] if version.get("storage")]
    return list(dict.fromkeys([*now, *crd.get("status", {}).get("storedVersions", [])]))


def upgraded(crd: Crd) -> dict[str, Any]:
    """Return the definition with our additions. Raises `Refused`."""
    legacy = form(crd) is Form.LEGACY
    version = _v1(crd)
    other = version["subresources"].get("scale", SCALE)
    if other != SCALE:
        raise Refused(
            f"{NAME} has another scale subresource in version v1 ({other}), which somebody may "
            "rely on. Remove it, and run this again"
        )
    added = {"additionalPrinterColumns": _columns(version.get("additionalPrinterColumns", []))}
    changed = {**version, "subresources": {**version["subresources"], "scale": SCALE}, **added}
    return _with_v1(crd, changed if legacy else _keeping_selector(changed))


def reverted(live: Crd, before: Crd) -> dict[str, Any]:
    """Return the live definition without our additions; later changes of others stay.

    Additions that somebody else's manifest has as well stay, too. Raises `Refused`.
    """
    if is_declared(live):
        return dict(live)
    version, former = dict(_v1(live)), _v1(before)
    if (
        "scale" not in former.get("subresources", {})
        and version.get("subresources", {}).get("scale") == SCALE
    ):
        version["subresources"] = {
            key: value for key, value in version["subresources"].items() if key != "scale"
        }
    version = _without_columns(version, former)
    # The schema is reverted only if nobody has changed it since.
    if form(before) is Form.STRUCTURAL and version["schema"] == _keeping_selector(former)["schema"]:
        version["schema"] = former["schema"]
    return _with_v1(live, version)


def is_scalable(crd: Crd) -> bool:
    """Return True if version v1 has our scale subresource, and keeps the selector that it reads.

    Raises `Refused`.
    """
    version = _v1(crd)
    keeps = crd["spec"].get("preserveUnknownFields") or _keeping_selector(version) == version
    return bool(keeps and version.get("subresources", {}).get("scale") == SCALE)


def is_current(crd: Crd) -> bool:
    """Return True if `upgraded` need not add anything; the manifest of somebody else stays.

    Raises `Refused`.
    """
    columns = _v1(crd).get("additionalPrinterColumns", [])
    return is_scalable(crd) and (_FORMER not in columns or is_declared(crd))


def writers(crd: Crd) -> list[str]:
    """Return the field managers of the versions that may write them again."""
    found = {str(entry["manager"]) for entry in _entries(crd)} - _ONCE
    return sorted(name for name in found if not name.startswith(names.PROGRAM))


def is_declared(crd: Crd) -> bool:
    """Return True if somebody else's manifest has the scale subresource.

    The definition itself has it, too.
    """
    applied = any(entry["operation"] == "Apply" for entry in _entries(crd))
    return (applied and _has_scale(crd)) or _has_scale(_last_applied(crd))


def _v1(crd: Crd) -> Version:
    for version in crd["spec"]["versions"]:
        if version["name"] == MPI_JOBS.version:
            return cast("Version", version)
    found = ", ".join(version["name"] for version in crd["spec"]["versions"])
    raise Refused(
        f"{NAME} has no version v1, only {found}; an upgrade needs "
        "mpi-operator v0.2.3 with MPIJob v1"
    )


def _with_v1(crd: Crd, version: Version) -> dict[str, Any]:
    versions = [
        version if other["name"] == MPI_JOBS.version else other for other in crd["spec"]["versions"]
    ]
    return {**crd, "spec": {**crd["spec"], "versions": versions}}


def _columns(there: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    there = [column for column in there if column != _FORMER]
    taken = {column["name"].lower() for column in there}
    *new, age = COLUMNS
    ours = [column for column in new if column["name"].lower() not in taken]
    # kubectl always shows Age last.
    last = [column for column in there if column["name"].lower() == "age"]
    return [*(column for column in there if column not in last), *ours, *(last or [age])]


def _without_columns(version: dict[str, Any], former: Version) -> dict[str, Any]:
    live, before = (
        version.get("additionalPrinterColumns", []),
        former.get("additionalPrinterColumns", []),
    )
    if [_PHASE if column == _FORMER else column for column in live] == _columns(before):
        kept = before
    else:
        kept = [column for column in live if column not in (*COLUMNS, _FORMER) or column in before]
    rest = {key: value for key, value in version.items() if key != "additionalPrinterColumns"}
    return {**rest, "additionalPrinterColumns": kept} if kept else rest


def _keeping_selector(version: Version) -> dict[str, Any]:
    was = version["schema"]["openAPIV3Schema"]
    kept = _schema_keeping(was, names.SELECTOR_PATH, {"type": "string"})
    return {**version, "schema": {**version["schema"], "openAPIV3Schema": kept}}


def _schema_keeping(schema: Schema, path: tuple[str, ...], leaf: Schema) -> dict[str, Any]:
    """Return the schema with which the field at `path` is stored.

    `leaf` is the schema of a new field. A structural schema prunes each field that it does not
    name, unless PRESERVE says otherwise.
    https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#field-pruning
    """
    if not path:
        return dict(schema)
    name, *rest = path
    properties = schema.get("properties", {})
    if name in properties:
        return {
            **schema,
            "properties": {
                **properties,
                name: _schema_keeping(properties[name], tuple(rest), leaf),
            },
        }
    if isinstance(schema.get("additionalProperties"), Mapping):
        return {
            **schema,
            "additionalProperties": _schema_keeping(
                schema["additionalProperties"], tuple(rest), leaf
            ),
        }
    if schema.get(PRESERVE) or schema.get("additionalProperties") is True:
        return dict(schema)
    new = {"type": "object", PRESERVE: True} if rest else dict(leaf)
    return {**schema, "properties": {**properties, name: new}}


def _entries(crd: Crd) -> list[Mapping[str, Any]]:
    entries = crd["metadata"].get("managedFields", [])
    return [
        entry for entry in entries if "f:versions" in entry.get("fieldsV1", {}).get("f:spec", {})
    ]


def _has_scale(crd: Crd) -> bool:
    versions = (crd.get("spec") or {}).get("versions") or []
    return any("scale" in (version.get("subresources") or {}) for version in versions)


def _last_applied(crd: Crd) -> Crd:
    try:
        found = json.loads(crd["metadata"].get("annotations", {}).get(LAST_APPLIED, ""))
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}
