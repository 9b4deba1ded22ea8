"""Renders what no value changes from config/ into the Helm chart: `make manifests` writes `templates/generated`.

An object's condition follows from the overlays that have it. Objects in which values change more
than a namespace are templates of their own; a test compares what the chart renders with every
overlay, object by object.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import yaml

from mpijob_elastic.install import overlays
from mpijob_elastic.install.objects import Manifest, ObjectIdentity, by_identity
from mpijob_elastic.install.overlays import (
    DEFAULT,
    LEASE_READERS,
    NAMESPACE_PLACEHOLDER,
    RIGHTS_TO_EVICT,
    Overlay,
)

CHART = Path(__file__).parents[1] / "charts" / "mpijob-elastic"
GENERATED = CHART / "templates" / "generated"
# The objects with templates written by hand.
BY_HAND = frozenset(
    {
        ("Deployment", "mpijob-elastic-controller"),
        ("Deployment", "mpijob-elastic-webhook"),
        ("MutatingWebhookConfiguration", "mpijob-elastic"),
        ("ValidatingWebhookConfiguration", "mpijob-elastic"),
        ("ClusterRole", "mpijob-elastic-webhook"),
        ("RoleBinding", LEASE_READERS),
    }
)
# The overlay et-operator can be had beside each of these, and changes one of their objects.
_OVERLAYS = tuple(one for one in Overlay if one is not Overlay.ET_OPERATOR)
_REQUESTS = ".Values.etOperator.enabled"
_HEADER = "{{- /* `make manifests` writes this file from config/; do not edit it. */ -}}\n"
_OF_KIND = {
    "Namespace": ("namespace", ".Values.namespace.create"),
    "FlowSchema": ("flow-control", 'include "mpijob-elastic.flowControl" .'),
    "ValidatingAdmissionPolicy": ("guard", 'include "mpijob-elastic.guard" .'),
    "ValidatingAdmissionPolicyBinding": ("guard", 'include "mpijob-elastic.guard" .'),
}
# The webhook has these rights only together with the policy that limits them, and not with
# cert-manager.
_GUARDED = 'and (include "mpijob-elastic.guard" .) (not .Values.certManager.enabled)'
_RIGHTS_TO_EVICT = {
    "ClusterRole": ("evictions", f"{_GUARDED} (not .Values.jobsNamespaces)"),
    "Role": ("evictions-single-namespace", f"{_GUARDED} .Values.jobsNamespaces"),
}
# The overlays that have an object decide: all but the first, or only the first.
_ALL_BUT = {
    Overlay.SINGLE_NAMESPACE: ("all-namespaces", "not .Values.jobsNamespaces"),
    Overlay.CERT_MANAGER: ("own-certificates", "not .Values.certManager.enabled"),
}
_ONLY = {
    Overlay.SINGLE_NAMESPACE: ("single-namespace", ".Values.jobsNamespaces"),
    Overlay.CERT_MANAGER: ("cert-manager", ".Values.certManager.enabled"),
    Overlay.PROMETHEUS: ("monitoring", ".Values.monitoring.enabled"),
    Overlay.USER_ROLES: ("user-roles", ".Values.userRoles.enabled"),
}


def generated() -> dict[str, str]:
    """Return the generated templates by file name."""
    rendered = {name: by_identity(overlays.rendered(name)) for name in (DEFAULT, *_OVERLAYS)}
    beside = by_identity(overlays.rendered(Overlay.ET_OPERATOR))
    files: dict[str, list[Manifest]] = {}
    conditions: dict[str, str] = {}

    def put(manifest: Manifest, name: str, condition: str) -> None:
        files.setdefault(name, []).append(manifest)
        conditions[name] = condition

    for one, manifest in _union(rendered.values()).items():
        if (one.kind, one.name) in BY_HAND:
            continue
        name, condition = _place(one, rendered)
        other = beside.get(one, manifest)
        if one in rendered[DEFAULT] and other != manifest:
            put(other, f"{name}-with-et-operator", f"and ({condition}) {_REQUESTS}")
            put(manifest, f"{name}-without-et-operator", f"and ({condition}) (not {_REQUESTS})")
        else:
            put(manifest, name, condition)
    for manifest, name, condition in _of_requests(rendered, beside):
        put(manifest, name, condition)
    return {
        f"{name}.yaml": _HEADER + _conditional(conditions[name], _text(found))
        for name, found in files.items()
    }


def write() -> None:
    """Write the generated templates, and remove those that are not generated any more."""
    wanted = generated()
    GENERATED.mkdir(exist_ok=True)
    for path in GENERATED.iterdir():
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (GENERATED / name).write_text(text)


def _of_requests(
    rendered: Mapping[str, Mapping[ObjectIdentity, Manifest]],
    everywhere: Mapping[ObjectIdentity, Manifest],
) -> Iterator[tuple[Manifest, str, str]]:
    """Yield the objects that only the overlay et-operator has, with their templates and conditions."""
    inside = by_identity(overlays.combined([Overlay.SINGLE_NAMESPACE, Overlay.ET_OPERATOR]))
    known = _union(rendered.values())
    for one, manifest in _union([everywhere, inside]).items():
        if one in known:
            continue
        if one.kind == "CustomResourceDefinition":  # `uninstall` leaves it, too
            metadata = {**manifest["metadata"], "annotations": {"helm.sh/resource-policy": "keep"}}
            yield {**manifest, "metadata": metadata}, "et-operator", _REQUESTS
        elif one in everywhere:
            yield (
                manifest,
                "et-operator-all-namespaces",
                f"and {_REQUESTS} (not .Values.jobsNamespaces)",
            )
        else:
            yield (
                manifest,
                "et-operator-single-namespace",
                f"and {_REQUESTS} .Values.jobsNamespaces",
            )


def _union(rendered: Iterable[Mapping[ObjectIdentity, Manifest]]) -> dict[ObjectIdentity, Manifest]:
    return {one: manifest for found in rendered for one, manifest in found.items()}


def _place(
    one: ObjectIdentity, rendered: Mapping[str, Mapping[ObjectIdentity, Manifest]]
) -> tuple[str, str]:
    """Return the template of an object, and the condition under which it exists."""
    if one.name == RIGHTS_TO_EVICT and one.kind.removesuffix("Binding") in _RIGHTS_TO_EVICT:
        return _RIGHTS_TO_EVICT[one.kind.removesuffix("Binding")]
    if one.kind in _OF_KIND:
        return _OF_KIND[one.kind]
    having = {name for name, found in rendered.items() if one in found}
    [*absent] = rendered.keys() - having
    if not absent:
        return "common", ""
    if having <= _ONLY.keys() and len(having) == 1:
        return _ONLY[Overlay(having.pop())]
    if len(absent) == 1:
        return _ALL_BUT[Overlay(absent[0])]
    raise ValueError(
        f"{one} is in the overlays {sorted(having)}, for which there is no value; extend lab/chart.py"
    )


def _text(manifests: Iterable[Manifest]) -> str:
    text = yaml.safe_dump_all(manifests, sort_keys=False, width=120)
    # Alerts and the dashboard have templates of their own, which are none of Helm's. A whole run of
    # braces is escaped, because one that is left before an action would be read as part of it.
    escaped = re.sub(r"[{}]*(?:{{|}})[{}]*", lambda braces: f'{{{{ "{braces[0]}" }}}}', text)
    if NAMESPACE_PLACEHOLDER not in escaped:
        return escaped
    each = escaped.replace(NAMESPACE_PLACEHOLDER, "{{ . | quote }}")
    return f"{{{{- range .Values.jobsNamespaces }}}}\n---\n{each}{{{{- end }}}}\n"


def _conditional(condition: str, text: str) -> str:
    return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n" if condition else text
