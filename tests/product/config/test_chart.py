"""What of the chart can be checked without helm."""

from lab import chart


def test_what_is_generated_is_up_to_date() -> None:
    found = {path.name: path.read_text() for path in chart.GENERATED.iterdir()}
    assert found == chart.generated(), "run `make manifests`"


def test_no_brace_stands_before_an_action() -> None:
    """Helm would read it as part of the action, and refuse the whole chart."""
    assert not [name for name, text in chart.generated().items() if "{{{" in text]
