"""Replicas of the webhook that share a Secret, and what an API server makes of what they serve.

Every request is in flight twice: before it takes effect and before its answer arrives. At both
points the coroutine that sent it is suspended, so a test can interleave several replicas in any
order, or end one there.
"""

from base64 import b64decode
from collections.abc import Coroutine, Generator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache

from cryptography import x509

from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS
from tests.doubles.api import Object, TinyApi, refused
from tests.doubles.direct import DirectClient, Sent
from tests.product.webhook.certificates.material import HOST, NOON
from webhook.certificates import pairs
from webhook.certificates.decision import CertificatePolicy, Content
from webhook.certificates.messages import Lifetimes, RotationNews, Timing
from webhook.certificates.rotation import Clocks, Rotation
from webhook.certificates.serving import Serving

# A look is due every 10 s. A certificate is renewed after 50 s, a CA replaced after 150 s; the next
# signs after 190 s.
TIMING = Timing(look_every=10.0, settled=5.0)
LIFETIMES = Lifetimes(authority=timedelta(seconds=200), leaf=timedelta(seconds=60))
Bundles = tuple[frozenset[x509.Certificate], ...]
SECRET = SECRETS.path(names.NAMESPACE, names.CERTIFICATE_SECRET)
CONFIGURATIONS = tuple(
    resource.path(name=names.WEBHOOK_CONFIGURATION)
    for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
)


class _Turn:
    """Awaiting it hands control to the caller that drives the coroutine."""

    def __await__(self) -> Generator[None, None, None]:
        yield


def configuration(hooks: int) -> Object:
    """A webhook configuration as it is installed: without any caBundle."""
    return {
        "metadata": {"name": names.WEBHOOK_CONFIGURATION},
        "webhooks": [{"clientConfig": {}} for _ in range(hooks)],
    }


def advance(coroutine: Coroutine[None, None, None]) -> bool:
    """Drive a coroutine to its next suspension; False where it ended."""
    try:
        coroutine.send(None)
    except StopIteration:
        return False
    return True


@dataclass
class World:
    """An API server with both configurations, and the time: seconds since NOON, `skew` where the wall clock jumped.

    read_only: what nobody may write.
    """

    api: TinyApi = field(default_factory=TinyApi)
    read_only: set[str] = field(default_factory=set)
    now: float = 0.0
    skew: float = 0.0
    history: list[tuple[float, Bundles]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for hooks, path in enumerate(CONFIGURATIONS, start=1):
            self.api.put(path, configuration(hooks))

    async def answer(self, sent: Sent) -> bytes:
        await _Turn()
        path = (
            f"{sent.path}/{sent.body['metadata']['name']}" if sent.method == "POST" else sent.path
        )
        if sent.method != "GET" and path in self.read_only:
            raise refused(403, "Forbidden", path)
        answer = await self.api.answer(sent)
        await _Turn()
        return answer

    def wall(self) -> datetime:
        return NOON + timedelta(seconds=self.now + self.skew)

    def monotonic(self) -> float:
        return self.now

    def content(self) -> Content:
        data = self.api.objects[SECRET]["data"]
        return Content.parse({key: b64decode(value) for key, value in data.items()})

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
        if (
            certificate is None
            or pairs.fault(certificate, now=self.wall())
            or HOST not in pairs.names_of(certificate)
        ):
            return False
        past = [bundles for at, bundles in self.history if at <= self.now - lag][-1:]
        recent = [bundles for at, bundles in self.history if at > self.now - lag]
        states = [*past, *recent, self.bundles()]
        return all(
            any(_signed(ca, certificate) for ca in bundle) for state in states for bundle in state
        )


class Replica:
    """One process: what it serves and its look under way.

    A restart forgets everything but the Secret.
    """

    def __init__(self, world: World, *, timing: Timing = TIMING) -> None:
        self.serving = Serving()
        self.told = list[RotationNews]()
        self.rotation = Rotation(
            client=DirectClient(world.answer),
            namespace=names.NAMESPACE,
            serving=self.serving,
            policy=CertificatePolicy(hosts=frozenset({HOST}), lifetimes=LIFETIMES),
            timing=timing,
            clocks=Clocks(wall=world.wall, monotonic=world.monotonic),
            tell=self.told.append,
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
    under_way = replica.rotation.look()
    while advance(under_way):
        pass
    world.record()


@lru_cache(maxsize=4096)
def _signed(ca: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(ca)
    except Exception:  # noqa: BLE001 - any failure means that it did not
        return False
    return True
