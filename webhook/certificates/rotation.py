"""Every few seconds, look at Secret, caBundles and served certificate; safely make them agree."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain

from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.writer import ApiWriter
from webhook.certificates import decision, pairs, shared
from webhook.certificates.decision import CertificatePolicy, Content, RotationAction, Trust
from webhook.certificates.serving import Serving

# More than a look can need (BEGIN, then nothing), but no endless race with another writer of the
# Secret.
MOST_STEPS = 8

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Times in seconds."""

    #: Between two looks.
    look_every: float = 10.0
    #: How long bundles must have carried a CA before it counts as trusted.
    settled: float = 5.0


@dataclass(frozen=True, kw_only=True)
class Clocks:
    """The clocks of a rotation."""

    #: The clock by which certificates are valid; it may jump.
    wall: Callable[[], datetime]
    #: Seconds.
    monotonic: Callable[[], float]


@dataclass(kw_only=True)
class Rotation:
    """Keeps `serving` at a certificate that the API server trusts.

    Each replica has its own rotation; all share the Secret.
    """

    client: ApiWriter
    namespace: str
    serving: Serving
    policy: CertificatePolicy
    timing: Timing
    clocks: Clocks
    #: See `Content.secret_path`.
    secret_path: str = field(default="", init=False)
    _trust: Trust = field(default_factory=Trust, init=False)

    async def run(self) -> None:
        """Look until cancelled; if the API server does not answer, the next look asks again."""
        while True:
            try:
                await self.look()
            except errors.KubeError as error:
                _log.warning("certificates not checked: %s", error)
            await asyncio.sleep(self.timing.look_every)

    async def look(self) -> None:
        """Take one look, in the order of the package's rules. Raises `errors.KubeError`."""
        registered = await shared.registered(self.client)
        self._trust = self._trust.seen(shared.carried(registered), at=self.clocks.monotonic())
        content = await self._settle()
        try:
            self.secret_path = content.secret_path
            bundle = pairs.bundle(content.trusted)
            if written := await shared.distribute(
                self.client, registered, bundle, secret_path=self.secret_path
            ):
                _log.info(
                    "the caBundle is put right in %s: %d authorities", written, len(content.trusted)
                )
        finally:
            self._serve(content)

    async def _settle(self) -> Content:
        for _ in range(MOST_STEPS):
            content, version = await shared.read(self.client, namespace=self.namespace)
            now = self.clocks.wall()
            step = decision.next_step(content, self.policy, now=now)
            if step is None:
                return content
            # The bundles are read after a loss was noticed: an earlier look may be from before the
            # lost CA was distributed.
            found = (
                await shared.registered(self.client) if step.action is RotationAction.BEGIN else {}
            )
            seen = tuple(chain.from_iterable(shared.carried(found)))
            wanted = decision.carry_out(step, content, self.policy, seen=seen, now=now)
            try:
                await shared.write(self.client, wanted, version=version, namespace=self.namespace)
            except (errors.Conflict, errors.NotFound) as error:
                _log.info(
                    "the Secret changed meanwhile, %s was wanted: %s", step.action.value, error
                )
            except errors.KubeError:
                self._serve(content)  # a certificate that cannot be renewed is better than none
                raise
            else:
                _log.info("the Secret is written: %s (%s)", step.action.value, step.reason)
        raise errors.KubeError(
            f"the Secret {names.CERTIFICATE_SECRET} changed "
            f"{MOST_STEPS} times while it was put right"
        )

    def _serve(self, content: Content) -> None:
        leaf, authority = content.leaf, content.authority
        if leaf is None or authority is None or leaf.certificate == self.serving.certificate:
            return
        # A trusted old certificate is better than a new certificate that may not be trusted yet;
        # any certificate is better than none.
        is_trusted = self._trust.carries(
            authority.certificate, at=self.clocks.monotonic(), settled=self.timing.settled
        )
        if is_trusted or not self.serving.valid(now=self.clocks.wall()):
            self.serving.load(leaf.certificate_pem, leaf.key_pem)
