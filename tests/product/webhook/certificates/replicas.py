"""Replicas of the webhook that share a Secret in a MemoryApi, and what an API server makes of what they serve."""

from base64 import b64decode
from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache

from cryptography import x509

from mpijob_elastic import names
from mpijob_elastic.kube import errors
from tests.product.webhook.certificates.material import HOST, NOON
from tests.product.webhook.certificates.memory_api import (
    CONFIGURATIONS,
    SECRET,
    MemoryApi,
    Object,
    advance,
    configuration,
    finish,
)
from webhook.certificates.rotation import Clocks, Rotation, Timing
from webhook.certificates.serving import Serving
from webhook.metrics import Metrics
from webhook.rules.certificates import pairs
from webhook.rules.certificates.content import Content, parse
from webhook.rules.certificates.decision import Policy
from webhook.rules.certificates.pairs import Lifetimes

# A look is due every 10 s; a certificate is renewed after 80 s, a CA replaced after 160 s.
TIMING = Timing(look_every=10.0, settled=5.0)
LIFETIMES = Lifetimes(authority=timedelta(seconds=240), leaf=timedelta(seconds=120))
Bundles = tuple[frozenset[x509.Certificate], ...]


@dataclass
class World:
    """An API server with both configurations, and the time: seconds since NOON, `skew` where the wall clock jumped."""

    api: MemoryApi = field(default_factory=MemoryApi)
    now: float = 0.0
    skew: float = 0.0
    history: list[tuple[float, Bundles]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for hooks, path in enumerate(CONFIGURATIONS, start=1):
            self.api.put(path, configuration(hooks))

    def wall(self) -> datetime:
        return NOON + timedelta(seconds=self.now + self.skew)

    def monotonic(self) -> float:
        return self.now

    def content(self) -> Content:
        data = self.api.objects[SECRET]["data"]
        return parse({key: b64decode(value) for key, value in data.items()})

    def bundles(self) -> Bundles:
        hooks = [hook for one in self._configurations() for hook in one["webhooks"]]
        pems = [b64decode(hook["clientConfig"].get("caBundle", "")) for hook in hooks]
        return tuple(frozenset(pairs.parse_bundle(pem)) for pem in pems)

    def _configurations(self) -> list[Object]:
        return [self.api.objects[path] for path in CONFIGURATIONS if path in self.api.objects]

    def record(self) -> None:
        """Remember what the bundles are now."""
        self.history.append((self.now, self.bundles()))

    def believes(self, certificate: x509.Certificate | None, *, lag: float) -> bool:
        """Tell whether an API server that may be `lag` seconds behind certainly accepts a call to that certificate."""
        if certificate is None or pairs.fault(certificate, now=self.wall()) or HOST not in pairs.names_of(certificate):
            return False
        past = [bundles for at, bundles in self.history if at <= self.now - lag][-1:]
        recent = [bundles for at, bundles in self.history if at > self.now - lag]
        states = [*past, *recent, self.bundles()]
        return all(any(_signed(ca, certificate) for ca in bundle) for state in states for bundle in state)


class Replica:
    """One process: what it serves and its look under way. A restart forgets everything but the Secret."""

    def __init__(self, world: World, *, timing: Timing = TIMING) -> None:
        self.serving = Serving()
        self.rotation = Rotation(
            client=world.api,
            namespace=names.NAMESPACE,
            serving=self.serving,
            policy=Policy(hosts=frozenset({HOST}), lifetimes=LIFETIMES),
            timing=timing,
            clocks=Clocks(wall=world.wall, monotonic=world.monotonic),
            metrics=Metrics(),
        )
        self._look: Coroutine[None, None, None] | None = None

    def advance(self) -> None:
        """Let its look go on until its next request or answer; begin one where none is under way."""
        self._look = self._look or self.rotation.look()
        try:
            going = advance(self._look)
        except errors.KubeError:
            going = False
        self._look = self._look if going else None

    def finish(self) -> None:
        """Let the look under way end, or a whole new one."""
        self.advance()
        while self._look:
            self.advance()

    def stop(self) -> None:
        """End it where it is, as a crash does."""
        if self._look:
            self._look.close()
            self._look = None


def look(world: World, replica: Replica) -> None:
    """One undisturbed look. Raises what it raises."""
    finish(replica.rotation.look())
    world.record()


@lru_cache(maxsize=4096)
def _signed(ca: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(ca)
    except Exception:  # noqa: BLE001 - any failure means that it did not
        return False
    return True
