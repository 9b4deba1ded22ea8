"""Schemas that drop no field of a MPIJob; pure.

A structural schema prunes each field that it does not name, unless x-kubernetes-preserve-unknown-fields says otherwise.
https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#field-pruning
"""

from collections.abc import Mapping
from typing import Any

PRESERVE = "x-kubernetes-preserve-unknown-fields"

Schema = Mapping[str, Any]


def keeping(schema: Schema, path: tuple[str, ...], leaf: Schema) -> dict[str, Any]:
    """Return the schema with which the field at `path` is stored; `leaf` is the schema of a new field."""
    if not path:
        return dict(schema)
    name, *rest = path
    properties = schema.get("properties", {})
    if name in properties:
        return {**schema, "properties": {**properties, name: keeping(properties[name], tuple(rest), leaf)}}
    if isinstance(schema.get("additionalProperties"), Mapping):
        return {**schema, "additionalProperties": keeping(schema["additionalProperties"], tuple(rest), leaf)}
    if schema.get(PRESERVE) or schema.get("additionalProperties") is True:
        return dict(schema)
    new = {"type": "object", PRESERVE: True} if rest else dict(leaf)
    return {**schema, "properties": {**properties, name: new}}
