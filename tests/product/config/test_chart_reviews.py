"""The chart asks for the same reviews as config/; tests/peers compares the rest with Helm itself."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
WEBHOOK = re.compile(r"^  - name: (\S+)$|^  name: mpijob-elastic$|^kind: (\w+)$", re.MULTILINE)


def test_the_chart_has_each_webhook_of_config_in_its_order() -> None:
    chart = ROOT / "charts/mpijob-elastic/templates/webhook-configurations.yaml"
    config = ROOT / "config/base/webhook-configurations.yaml"
    wanted = WEBHOOK.findall(config.read_text())
    found = WEBHOOK.findall(chart.read_text())
    assert len(wanted) > 9
    assert found == wanted
