"""`mpijob-elastic version`."""

from mpijob_elastic import __version__
from mpijob_elastic.telemetry.terminal import say


def version() -> None:
    """Print the version."""
    say(f"mpijob-elastic {__version__}")
