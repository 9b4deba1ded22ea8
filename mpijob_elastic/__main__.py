"""`mpijob-elastic`, `kubectl mpijob-elastic`, `python -m mpijob_elastic`."""

import os
import sys

from mpijob_elastic import services
from mpijob_elastic.kube.errors import KubeError
from mpijob_elastic.loading import load

# As the command line ends at Ctrl-C (cli/exit_codes.py).
_INTERRUPTED = 130


def main() -> None:
    """Run a service in the cluster, or else the command line."""
    try:
        if services.ran(sys.argv[1:], os.environ):
            return
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except (KubeError, OSError) as error:
        load("mpijob_elastic.cli").end_with(error)
    load("mpijob_elastic.cli").main()


if __name__ == "__main__":
    main()
