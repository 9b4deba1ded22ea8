"""A definition keeps and uses a selector in the status, or does not."""

from typing import Any

import msgspec
import pytest

from mpijob_elastic.observe import registration

PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}
PATH = ".status.replicaStatuses.Worker.selector"
STRING = {"type": "string"}


def nested(leaf: dict[str, Any], *names: str) -> dict[str, Any]:
    """A structural schema that names these fields, the last with the schema `leaf`."""
    for name in reversed(names):
        leaf = {"type": "object", "properties": {name: leaf}}
    return leaf


def keeps(schema: dict[str, Any] | None, *, selector: str | None = PATH, **spec: Any) -> bool:
    subresources: dict[str, Any] = {"status": {}}
    if selector is not None:
        subresources["scale"] = {"specReplicasPath": ".x", "statusReplicasPath": ".y", "labelSelectorPath": selector}
    version = {"name": "v1", "subresources": subresources, "schema": {"openAPIV3Schema": schema or {}}}
    older = {"name": "v1alpha2"}
    return registration.keeps_selector(msgspec.json.encode({"spec": {"versions": [older, version], **spec}}))


@pytest.mark.parametrize(
    ("schema", "kept"),
    [
        (PRESERVE, True),
        (nested(PRESERVE, "status"), True),
        (nested(STRING, "status", "replicaStatuses", "Worker", "selector"), True),
        (nested({"additionalProperties": {"properties": {"selector": STRING}}}, "status", "replicaStatuses"), True),
        (nested({"additionalProperties": True}, "status", "replicaStatuses"), True),
        (nested({"additionalProperties": {"properties": {"active": {}}}}, "status", "replicaStatuses"), False),
        (nested({"type": "object"}, "status"), False),
        (nested(STRING, "status", "replicaStatuses", "Worker", "active"), False),
        (nested({"type": "object", **PRESERVE}, "spec"), False),
        (None, False),
    ],
)
def test_a_schema_keeps_or_prunes_it(schema: dict[str, Any] | None, kept: bool) -> None:
    assert keeps(schema) is kept


def test_a_scale_that_reads_it_is_needed_and_what_is_missing_means_no() -> None:
    assert keeps(None, preserveUnknownFields=True), "the legacy form keeps everything"
    for selector in (None, ".status.selector"):
        assert not keeps(PRESERVE, selector=selector)
        assert not keeps(None, selector=selector, preserveUnknownFields=True)
    for spec in ({}, {"versions": [{"name": "v1alpha2"}]}, {"versions": [{"name": "v1"}]}):
        assert registration.keeps_selector(msgspec.json.encode({"spec": spec} if spec else {})) is False
