"""The jobs of docs/elastic-jobs.md: the API server takes each as it stands, and the webhook warns as the page says."""

import json
import re
from pathlib import Path

import pytest
import yaml

from lab.cluster import Cluster
from tests.lab.hpa import STRICT, applied

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("webhook")]

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "elastic-jobs.md").read_text()
BEFORE, AFTER = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
EXAMPLE = yaml.safe_load((DOCS / "examples" / "elastic-pytorch" / "job.yaml").read_text())


@pytest.mark.parametrize("job", [BEFORE, AFTER, EXAMPLE], ids=["before", "after", "example"])
def test_it_is_taken_without_a_warning(job: dict[str, object], cluster: Cluster, namespace: str) -> None:
    assert applied(cluster, json.dumps(job), "--namespace", namespace, *STRICT) == ""


def test_the_page_has_the_warning_of_a_job_with_the_annotations_and_the_old_command(
    cluster: Cluster, namespace: str
) -> None:
    half = {**BEFORE, "metadata": AFTER["metadata"]}
    warning = applied(cluster, json.dumps(half), "--namespace", namespace, *STRICT)
    assert warning.startswith("Warning: ")
    assert warning in PAGE
