"""What every test starts from."""

import signal

from hypothesis import HealthCheck, settings

# A shell starts what it puts in the background with SIGINT ignored, and children inherit that; tests press Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says something about the machine's other work, and nothing about the code.
settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")
