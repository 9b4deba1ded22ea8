"""Settings of all tests."""

import os
import signal

from hypothesis import HealthCheck, settings

# Chooses by date what a run strikes: before pytest-xdist starts workers, which inherit the choice.
import tests.lab.deaths  # noqa: F401

# A shell starts what it puts in the background with SIGINT ignored, and children inherit that;
# tests press Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Programs and namespaces for every test that needs a control plane; Kueue for those of tests/peers
# and tests/real.
pytest_plugins = [
    "tests.lab.fixtures",
    "tests.lab.policies",
    "tests.peers.fixtures",
    "tests.run_record",
]

# The time that an example takes says something about the machine's other work, and nothing about
# the code.
_ANY_MACHINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The same examples in every run, so that a failure is never luck.
_SAME = settings(_ANY_MACHINE, derandomize=True, database=None)
settings.register_profile("test", _SAME, max_examples=50)
settings.register_profile("thorough", _SAME, max_examples=100)
# The same again with more of them: `make long`, which CI does not run.
settings.register_profile("long", _SAME, max_examples=1000)
# Other examples in every round of `make campaign` (tests/campaign/properties.py).
settings.register_profile("campaign", _ANY_MACHINE, max_examples=200, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "test"))
