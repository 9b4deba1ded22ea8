"""The processes that run in the cluster, `controller` and `webhook`, started with little memory.

The command line takes 12 MiB to read their options, and keeps them for as long as the process runs.
A pod's options are plain, so they are read here, and the command line is not imported. It answers
everything else, such as --help and errors of usage, and starts a service that it has read the
options of. Both ways call the same function: `run` of the service's module.
"""

from collections.abc import Mapping, Sequence

from mpijob_elastic.loading import load
from mpijob_elastic.services import plain_options
from mpijob_elastic.services.plain_options import Misuse, NotPlain

# Before the services, of which some import aiohttp first.
_HTTP_LIBRARY = "mpijob_elastic.kube.http_library"


def ran(words: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Run the service that these words of a command ask for, until it ends, if they are plain.

    Returns False if nothing was run, because the command line has to answer. Raises as the service
    does: `kube.errors.KubeError`, OSError.
    """
    try:
        service, options = plain_options.read(words, environment)
        load(_HTTP_LIBRARY)
        load(f"{__name__}.{service}").run(**options)
    except (NotPlain, Misuse):
        return False
    return True
