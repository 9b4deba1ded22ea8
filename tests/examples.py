"""The number of examples that hypothesis tries, as a share of the profile's number (tests/conftest.py)."""

from hypothesis import settings


def share(part: float) -> settings:
    """Return settings with so many times the profile's number of examples: fewer where examples are expensive."""
    return settings(max_examples=max(1, round(part * settings().max_examples)))
