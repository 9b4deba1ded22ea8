"""What of the chart can be checked without helm."""

from lab import chart


def test_what_is_generated_is_up_to_date() -> None:
    found = {path.name: path.read_text() for path in chart.GENERATED.iterdir()}
    assert found == chart.generated(), "run `make manifests`"
