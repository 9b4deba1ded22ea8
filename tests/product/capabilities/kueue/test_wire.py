"""What is read from the status of a Workload."""

import json
from typing import Any

import pytest

from mpijob_elastic.capabilities.kueue import wire
from mpijob_elastic.capabilities.kueue.facts import Workload

ETA = "Provisioning, ETA: 2026-11-26T15:00:00Z"


def read(*true: str, checks: dict[str, str], **others: Any) -> Workload:
    conditions = [{"type": name, "status": "True", "message": f"{name} is so"} for name in true]
    told = [{"name": name, "state": state, "message": ETA} for name, state in checks.items()]
    body = {"metadata": {"name": "j-launcher"}, "status": {"conditions": conditions, "admissionChecks": told}}
    return wire.read(json.dumps(body | others).encode())


@pytest.mark.parametrize(
    ("true", "checks", "checked", "said"),
    [
        (["QuotaReserved"], {"a": "Ready", "b": "Pending"}, True, f"AdmissionCheck b is Pending: {ETA}"),
        (["QuotaReserved"], {"a": "Ready"}, False, ""),
        (["QuotaReserved", "Admitted"], {"a": "Ready"}, False, ""),
        (["QuotaReserved", "Evicted"], {"a": "Pending"}, False, "Evicted is so"),
        (["Evicted"], {"a": "Pending"}, False, ""),
    ],
)
def test_a_check_that_has_yet_to_answer_says_why_quota_that_is_reserved_starts_no_pod(
    true: list[str], checks: dict[str, str], checked: bool, said: str
) -> None:
    found = read(*true, checks=checks)
    assert (found.checked, found.said) == (checked, said)
