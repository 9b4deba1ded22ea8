"""What of the chart can be checked without helm."""

import yaml

from lab import chart
from mpijob_elastic import __version__


def test_what_is_generated_is_up_to_date() -> None:
    found = {path.name: path.read_text() for path in chart.GENERATED.iterdir()}
    assert found == chart.generated(), "run `make manifests`"


def test_the_versions_are_those_of_the_program() -> None:
    found = yaml.safe_load((chart.CHART / "Chart.yaml").read_text())
    assert (found["version"], found["appVersion"]) == (__version__, __version__)
