"""What every test starts from."""

import signal

# A shell starts what it puts in the background with SIGINT ignored, and children inherit that; tests press Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
