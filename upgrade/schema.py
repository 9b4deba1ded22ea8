"""Schemas that drop no field of a MPIJob; pure.

A structural schema prunes each field that it does not name, unless x-kubernetes-preserve-unknown-fields says otherwise.
https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#field-pruning
"""

from collections.abc import Mapping
from typing import Any

PRESERVE = "x-kubernetes-preserve-unknown-fields"

Schema = Mapping[str, Any]

# A schema with any of these describes an object.
_OBJECT_MARKS = ("properties", "additionalProperties", PRESERVE)


def structural(schema: Schema) -> dict[str, Any]:
    """Return the same checks as a structural schema that keeps every field without a check.

    A schema from before apiextensions v1 may omit the type of an object, which v1 does not accept.
    """
    result = dict(schema)
    if any(mark in schema for mark in _OBJECT_MARKS) or schema.get("type", "object") == "object":
        result |= {"type": "object", PRESERVE: True}
    if "properties" in schema:
        result["properties"] = {name: structural(part) for name, part in schema["properties"].items()}
    if isinstance(schema.get("additionalProperties"), Mapping):
        # The two exclude each other: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
        result["additionalProperties"] = structural(schema["additionalProperties"])
        del result[PRESERVE]
    if isinstance(schema.get("items"), Mapping):
        result |= {"type": "array", "items": structural(schema["items"])}
        result.pop(PRESERVE, None)
    return result


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
