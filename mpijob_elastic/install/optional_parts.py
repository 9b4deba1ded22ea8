"""Optional parts of an installation whose loss somebody would notice late.

The options of the last `install` alone decide what is installed. A part that was chosen before and
is not named now would go without a word, and with it the rights of all users, for example. So such
a part goes only if its removal is asked for.
"""

import shlex
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from mpijob_elastic import names
from mpijob_elastic.install import Refused, overlays
from mpijob_elastic.install.objects import identity, read
from mpijob_elastic.install.overlays import EVERYBODY, LEASE_READERS, LEAVES_LABELS, Overlay
from mpijob_elastic.install.server import Found
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import DEPLOYMENTS, ROLE_BINDINGS, ROLES
from mpijob_elastic.observe import registration

# What is lost with each of these overlays. The others change only how we do our work.
LOSSES: Mapping[Overlay, str] = {
    Overlay.USER_ROLES: (
        "whoever may use our commands by view, edit, admin or a binding to one of our roles would "
        "lose that right"
    ),
    Overlay.PROMETHEUS: "Prometheus would neither read our metrics nor alert anybody",
    Overlay.ET_OPERATOR: "nobody would carry out ScaleIns and ScaleOuts",
}


def lost(stale: Iterable[Found], given: Collection[Overlay]) -> list[Overlay]:
    """Return the overlays of the table above that are installed, and not given; pure.

    stale: our objects that are to go.
    """
    going = {(one.resource.kind, one.name) for one in stale}
    left_out = [overlay for overlay in LOSSES if overlay not in given]
    return [overlay for overlay in left_out if not going.isdisjoint(own_objects(overlay))]


def own_objects(overlay: Overlay) -> set[tuple[str, str]]:
    """Return kind and name of each object that comes with this overlay alone; pure."""
    narrow = Overlay.SINGLE_NAMESPACE
    return _objects([overlay], [overlay, narrow]) - _objects([], [narrow])


def _objects(*chosen: Collection[Overlay]) -> set[tuple[str, str]]:
    found = (identity(manifest) for some in chosen for manifest in overlays.combined(some))
    return {(one.kind, one.name) for one in found}


@dataclass(frozen=True, kw_only=True)
class TypedChoices:
    """What a command says of parts that may have been chosen before."""

    #: The command as it was typed, for whoever has to repeat it.
    command: str = names.INSTALL
    #: Overlays that may go.
    removed: tuple[Overlay, ...] = ()
    #: The group that reads the Lease was named, or that nobody does.
    names_readers: bool = False
    #: It was said whether labels of pod templates are put back.
    names_labels: bool = False


@dataclass(frozen=True, kw_only=True)
class ForgottenOption:
    """An option that is missing, although the cluster has what it brings."""

    #: The option as it is typed.
    keeps: str
    #: What is lost without it, as a sentence without a period; "" where another option says that.
    harm: str
    #: The option that is typed to lose it; "" likewise.
    gives_up: str


async def check_kept(
    client: ApiReader, stale: Collection[Found], given: Collection[Overlay], choices: TypedChoices
) -> None:
    """Raise `Refused` if something would go that the command neither keeps nor gives up.

    stale: our objects that are to go. given: the overlays of the command. Raises
    `errors.KubeError`.
    """
    going = [overlay for overlay in lost(stale, given) if overlay not in choices.removed]
    found = [_of_overlay(overlay) for overlay in going]
    if not choices.names_readers and Overlay.USER_ROLES in given:
        found += await _forgotten_readers(client)
    if Overlay.USER_ROLES in going:
        # Whoever reads the Lease goes with the overlay, and comes back with it.
        found += [replace(one, harm="", gives_up="") for one in await _forgotten_readers(client)]
    if not choices.names_labels:
        found += await _forgotten_labels(client)
    if not found:
        return
    keeping = " ".join(one.keeps for one in found)
    harm = "; ".join(one.harm for one in found if one.harm)
    giving_up = " ".join(one.gives_up for one in found if one.gives_up)
    raise Refused(
        f"{keeping} is missing: {harm}. To keep what you have, type "
        f"`{choices.command} {keeping}`. To lose it, add {giving_up} instead"
    )


def _of_overlay(overlay: Overlay) -> ForgottenOption:
    return ForgottenOption(
        keeps=f"--overlay {overlay}",
        harm=LOSSES[overlay],
        gives_up=f"--remove-overlay {overlay}",
    )


async def _forgotten_readers(client: ApiReader) -> list[ForgottenOption]:
    """Return the option for who reads the Lease, unless everybody does."""
    raw = await client.find(ROLE_BINDINGS.path(names.NAMESPACE, LEASE_READERS))
    if raw is None:
        return [_readers("''")] if await _binds_nobody(client) else []
    groups = [subject["name"] for subject in read(raw).get("subjects") or ()]
    return [_readers(shlex.quote(group)) for group in groups if group != EVERYBODY]


async def _binds_nobody(client: ApiReader) -> bool:
    """Tell whether an installation that was finished has the Role, and binds nobody to it."""
    if await client.find(ROLES.path(names.NAMESPACE, LEASE_READERS)) is None:
        return False
    return bool(await registration.read(client))


def _readers(group: str) -> ForgottenOption:
    return ForgottenOption(
        keeps=f"--lease-readers {group}",
        harm="everybody whom the API server knows could read the Lease of the controllers",
        gives_up=f"--lease-readers {EVERYBODY}",
    )


async def _forgotten_labels(client: ApiReader) -> list[ForgottenOption]:
    """Return the option that leaves labels of pod templates out, if the webhook has it."""
    raw = await client.find(DEPLOYMENTS.path(names.NAMESPACE, names.WEBHOOK))
    containers = read(raw)["spec"]["template"]["spec"]["containers"] if raw else []
    if not any(LEAVES_LABELS in (container.get("args") or ()) for container in containers):
        return []
    return [
        ForgottenOption(
            keeps=LEAVES_LABELS,
            harm="rules of the cluster could begin to match pods of jobs",
            gives_up="--template-labels",
        )
    ]
