"""The alerts of the overlay `prometheus`, by promtool: each fires on what it is for, and on nothing else."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.peers.alert_cases import FIRES, HEALTH, QUIET, Case
from tests.peers.alert_rules import spec

pytestmark = pytest.mark.peers
FIRING = 'count by (alertname) (ALERTS{alertstate="firing"})'


def rules() -> dict[str, Any]:
    """Return the alerts by name."""
    return {
        rule["alert"].removeprefix("MPIJobElastic"): rule
        for group in spec()["groups"]
        for rule in group["rules"]
    }


@pytest.fixture
def rule_file(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump(spec()))
    return path


def test_prometheus_takes_the_rules(promtool: Path, rule_file: Path) -> None:
    run(promtool, "check", "rules", "--lint-fatal", str(rule_file))


@pytest.mark.parametrize("case", [*FIRES, *QUIET], ids=lambda case: case.name)
def test_an_alert(promtool: Path, rule_file: Path, case: Case) -> None:
    test = {
        "interval": "30s",
        "input_series": [
            {"series": name, "values": values}
            for name, values in (HEALTH | dict(case.series)).items()
        ],
        "promql_expr_test": [
            {"expr": FIRING, "eval_time": f"{case.minute}m", "exp_samples": firing(case)}
        ],
        "alert_rule_test": [told(case)] if case.alert else [],
    }
    path = rule_file.with_name("test.yaml")
    path.write_text(
        yaml.safe_dump(
            {"rule_files": [rule_file.name], "evaluation_interval": "30s", "tests": [test]}
        )
    )
    run(promtool, "test", "rules", str(path))


def test_there_is_a_case_for_each_alert() -> None:
    assert {case.alert for case in FIRES} == rules().keys()


def firing(case: Case) -> list[dict[str, Any]]:
    """Return the alerts that fire."""
    return (
        [{"labels": f'{{alertname="MPIJobElastic{case.alert}"}}', "value": 1}] if case.alert else []
    )


def told(case: Case) -> dict[str, Any]:
    """Return what the alert says."""
    rule, shown = rules()[case.alert], iter(case.shown)
    texts = {
        name: re.sub(r"{{.*?}}", lambda _: next(shown), rule["annotations"][name])
        for name in ("summary", "description")
    }
    assert next(shown, None) is None
    expected = {"exp_labels": {**rule["labels"], **case.labels}, "exp_annotations": texts}
    return {"alertname": rule["alert"], "eval_time": f"{case.minute}m", "exp_alerts": [expected]}


def run(promtool: Path, *arguments: str) -> None:
    done = subprocess.run([promtool, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
