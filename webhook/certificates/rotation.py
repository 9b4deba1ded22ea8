"""Look at Secret, caBundles and served certificate until they agree, and safely make them agree."""

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
from webhook.certificates.messages import Rest, RotationNews, Timing
from webhook.certificates.serving import Serving

# More than a look can need (BEGIN, then nothing), but no endless race with another writer of the
# Secret.
MOST_STEPS = 8

_log = logging.getLogger(__name__)


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
    #: Called by `look` with the secret path, and by `run` after each look.
    tell: Callable[[RotationNews], None] = lambda _: None
    #: See `Content.secret_path`.
    secret_path: str = field(default="", init=False)
    #: Set by a look that found nothing to do.
    rest: Rest | None = field(default=None, init=False)
    _trust: Trust = field(default_factory=Trust, init=False)

    async def run(self) -> None:
        """Look until there is nothing to do; if the API server does not answer, look again.

        Each look is told, so that a look that hangs can be seen.
        """
        while self.rest is None:
            try:
                await self.look()
            except errors.KubeError as error:
                _log.warning("certificates not checked: %s", error)
            self.tell(
                RotationNews(served=self.serving.pair, secret_path=self.secret_path, rest=self.rest)
            )
            if self.rest is None:
                await asyncio.sleep(self.timing.look_every)

    async def look(self) -> None:
        """Take one look, in the order of the package's rules. Raises `errors.KubeError`."""
        self.rest = None
        registered = await shared.registered(self.client)
        self._trust = self._trust.seen(shared.carried(registered), at=self.clocks.monotonic())
        content, version = await self._settle()
        written = 0
        try:
            self.secret_path = content.secret_path
            # Before the API server has the path, because its next review may come there.
            self.tell(RotationNews(secret_path=self.secret_path))
            bundle = pairs.bundle(content.trusted)
            written = await shared.distribute(
                self.client, registered, bundle, secret_path=self.secret_path
            )
            if written:
                _log.info(
                    "the caBundle is put right in %s: %d authorities", written, len(content.trusted)
                )
        finally:
            self._serve(content)
        if not written:
            self.rest = self._rest(content, [version, *shared.versions(registered)])

    def _rest(self, content: Content, versions: list[str]) -> Rest | None:
        """Return that there is nothing to do; None while a certificate waits to be trusted."""
        if content.leaf is None or content.leaf.certificate != self.serving.certificate:
            return None
        since, until = decision.lull(content, self.policy)
        return Rest(versions=versions, since=since.timestamp(), until=until.timestamp())

    async def _settle(self) -> tuple[Content, str]:
        for _ in range(MOST_STEPS):
            content, version = await shared.read(self.client, namespace=self.namespace)
            now = self.clocks.wall()
            step = decision.next_step(content, self.policy, now=now)
            if step is None:
                return content, version
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
