"""No patch but an addition to our fields leaves this program."""

from __future__ import annotations

import pytest

from webhook import patching
from webhook.patching import ForeignField


def test_an_addition_to_our_fields() -> None:
    script = patching.adding("discover_hosts.sh", "#!/bin/sh\n", at="/data")
    assert script == ({"op": "add", "path": "/data/discover_hosts.sh", "value": "#!/bin/sh\n"},)
    item = patching.adding("2", {"key": "x"}, at="/spec/volumes/10/configMap/items")
    assert item == ({"op": "add", "path": "/spec/volumes/10/configMap/items/2", "value": {"key": "x"}},)


@pytest.mark.parametrize(
    ("key", "at"),
    [
        ("hostfile", "/data"),
        ("discover_hosts.sh", "/binaryData"),
        ("discover_hosts.sh/x", "/data"),
        ("0", "/spec/containers"),
        ("0", "/spec/volumes"),
        ("0", "/spec/volumes/0/secret/items"),
        ("name", "/spec/volumes/0/configMap"),
        ("01", "/spec/volumes/0/configMap/items"),
        ("-", "/spec/volumes/0/configMap/items"),
        ("0", "/spec/volumes/x/configMap/items"),
        ("0\n", "/spec/volumes/0/configMap/items"),
    ],
)
def test_anything_else_is_a_fault(key: str, at: str) -> None:
    with pytest.raises(ForeignField):
        patching.adding(key, "x", at=at)
