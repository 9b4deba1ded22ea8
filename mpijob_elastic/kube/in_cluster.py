"""The access that a pod has: the address in its environment, and the files of its service account.

https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
"""

import logging
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from mpijob_elastic.kube.access import Access, NoCredentials, unusable

log = logging.getLogger(__name__)

#: Where a kubelet mounts the files of a pod's service account.
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
#: The variable that every pod has.
HOST = "KUBERNETES_SERVICE_HOST"
PORT = "KUBERNETES_SERVICE_PORT"
#: Seconds after which the token is read again, as client-go does (transport/token_source.go): a
#: kubelet replaces the file at 80 % of the token's lifetime.
READ_EVERY = 60.0
#: What messages call this configuration.
WHERE = "this pod"


class TokenFile:
    """A token in a file that is replaced now and then.

    clock: monotonic seconds. Raises `NoCredentials` if the file cannot be read at first.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._read_at = clock()
        self._token = self._read()
        self._is_away = False

    async def authorization(self) -> str:
        """Return the header's value, with the last token that could be read.

        A file that is away for a moment, or half written, is read again for the next request, as
        client-go does (transport/token_source.go): the last token mostly still counts, and if not,
        the API server says so.
        """
        now = self._clock()
        if now - self._read_at >= READ_EVERY:
            self._renew(now)
        return f"Bearer {self._token}"

    def _renew(self, now: float) -> None:
        try:
            self._token = self._read()
        except NoCredentials as error:
            # A warning once, because each request comes here until the file is back.
            level = logging.DEBUG if self._is_away else logging.WARNING
            log.log(level, "the last token is used on: %s", error)
            self._is_away = True
            return
        self._is_away = False
        self._read_at = now

    def _read(self) -> str:
        try:
            words = self._path.read_text(encoding="ascii").split()
        except OSError as error:
            raise NoCredentials(f"{self._path} cannot be read: {error.strerror}") from error
        except ValueError:
            words = []
        if len(words) != 1:
            raise NoCredentials(f"{self._path} holds no token")
        return words[0]


def in_cluster_access(environment: Mapping[str, str], folder: Path) -> Access:
    """Return the access of a pod with these variables and this folder of files, without a proxy.

    Raises `errors.Unconfigured`, with the reason, if one of them is missing or cannot be used.
    """
    try:
        return Access(
            host=_address(environment),
            tls=_trusting(folder / "ca.crt"),
            authorization=TokenFile(folder / "token").authorization,
        )
    except NoCredentials as error:
        raise unusable(WHERE, str(error)) from error


def _address(environment: Mapping[str, str]) -> str:
    for name in (HOST, PORT):
        if not environment.get(name):
            raise NoCredentials(f"the environment variable {name} is not set")
    host = environment[HOST]
    if ":" in host:
        host = f"[{host}]"
    return f"https://{host}:{environment[PORT]}"


def _trusting(file: Path) -> ssl.SSLContext:
    """Return the TLS settings that trust the authorities in a file, and no others."""
    try:
        tls = ssl.create_default_context(cafile=str(file))
    except ssl.SSLError as error:
        raise NoCredentials(f"{file} holds no certificate") from error
    except OSError as error:
        raise NoCredentials(f"{file} cannot be read: {error.strerror}") from error
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    return tls
