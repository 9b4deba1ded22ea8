"""The queries of docs/examples/hpa, by promtool: what prometheus-adapter and KEDA ask, and what Prometheus answers."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.peers

EXAMPLES = Path(__file__).parents[4] / "docs" / "examples" / "hpa"
WORKERS = "train-worker-0|train-worker-1"
SERIES = {
    # Two replicas of the program that fills the queue; another queue; the same queue of another
    # namespace.
    'train_queue_length{namespace="default",queue="train",pod="filler-a"}': "390+0x20",
    'train_queue_length{namespace="default",queue="train",pod="filler-b"}': "380+0x20",
    'train_queue_length{namespace="default",queue="other",pod="filler-a"}': "800+0x20",
    'train_queue_length{namespace="elsewhere",queue="train",pod="filler-a"}': "900+0x20",
}


def gpu(pod: str, number: int, *, namespace: str = "default") -> str:
    """A series of dcgm-exporter as Prometheus stores it when the exporter's own pod has the labels."""
    used_by = f'exported_namespace="{namespace}",exported_pod="{pod}"'
    return f'DCGM_FI_DEV_GPU_UTIL{{namespace="gpu-operator",pod="dcgm-exporter-a",gpu="{number}",{used_by}}}'


# A worker with two GPUs; a worker that rests every other half minute; what must not count.
GPUS = {
    gpu("train-worker-0", 0): "20+0x20",
    gpu("train-worker-0", 1): "60+0x20",
    gpu("train-worker-1", 0): "50+0x9" + " 100 0" * 5,
    gpu("train-launcher", 0): "99+0x20",
    gpu("train-worker-0", 0, namespace="elsewhere"): "99+0x20",
}


def rule(kind: str) -> dict[str, str]:
    """Return the only rule of a kind."""
    config = yaml.safe_load((EXAMPLES / "adapter-rules.yaml").read_text())["data"]["config.yaml"]
    [found] = yaml.safe_load(config)[kind]
    return dict(found)


def asked(rule: dict[str, str], *, matchers: str, group_by: str) -> str:
    """Return what the adapter asks Prometheus: it fills in the template of the rule (v0.12.0, pkg/naming)."""
    [series] = re.findall(r"^\w+", rule["seriesQuery"])
    parts = {"Series": series, "LabelMatchers": matchers, "GroupBy": group_by}
    return re.sub(r"<<\.(\w+)>>", lambda found: parts[found[1]], rule["metricsQuery"])


def answers(promtool: Path, path: Path, query: str, expected: dict[str, int]) -> None:
    """Hold that Prometheus answers so after ten minutes: a value for each set of labels."""
    samples: list[dict[str, Any]] = [
        {"labels": labels, "value": value} for labels, value in expected.items()
    ]
    test = {
        "interval": "30s",
        "input_series": [
            {"series": name, "values": values} for name, values in (SERIES | GPUS).items()
        ],
        "promql_expr_test": [{"expr": query, "eval_time": "9m30s", "exp_samples": samples}],
    }
    path.write_text(
        yaml.safe_dump({"rule_files": [], "evaluation_interval": "30s", "tests": [test]})
    )
    done = subprocess.run(
        [promtool, "test", "rules", str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "test.yaml"


def test_the_adapter_measures_the_queue_that_the_hpa_selects(promtool: Path, file: Path) -> None:
    [metric] = yaml.safe_load((EXAMPLES / "queue.yaml").read_text())["spec"]["metrics"]
    [(label, value)] = metric["external"]["metric"]["selector"]["matchLabels"].items()
    matchers = f'{label}="{value}",namespace="default"'
    answers(
        promtool, file, asked(rule("externalRules"), matchers=matchers, group_by=""), {"{}": 390}
    )


def test_the_adapter_measures_each_worker_once_over_five_minutes(
    promtool: Path, file: Path
) -> None:
    matchers = f'exported_namespace="default",exported_pod=~"{WORKERS}"'
    workers = {'{exported_pod="train-worker-0"}': 40, '{exported_pod="train-worker-1"}': 50}
    answers(
        promtool, file, asked(rule("rules"), matchers=matchers, group_by="exported_pod"), workers
    )


@pytest.mark.parametrize(("kind", "found"), [("externalRules", len(SERIES)), ("rules", len(GPUS))])
def test_the_adapter_finds_the_series(promtool: Path, file: Path, kind: str, found: int) -> None:
    answers(promtool, file, f"count({rule(kind)['seriesQuery']})", {"{}": found})


def test_keda_measures_the_same_queue(promtool: Path, file: Path) -> None:
    """It takes the value of a query that answers with exactly one."""
    [trigger] = yaml.safe_load((EXAMPLES / "keda.yaml").read_text())["spec"]["triggers"]
    answers(promtool, file, trigger["metadata"]["query"], {"{}": 390})
