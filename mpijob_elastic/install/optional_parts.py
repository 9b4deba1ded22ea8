"""Optional parts of an installation whose loss somebody would notice late.

The options of the last `install` alone decide what is installed. A part that was chosen before and
is not named now would go without a word, and with it the rights of all users, for example. So such
a part goes only if its removal is asked for.
"""

import shlex
from collections.abc import Collection, Iterable, Mapping

from mpijob_elastic.install import Refused, overlays
from mpijob_elastic.install.objects import identity, read
from mpijob_elastic.install.overlays import EVERYBODY, LEASE_READERS, Overlay
from mpijob_elastic.install.server import Found
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.model.phrases import listed

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


async def check_kept(
    client: ApiReader,
    stale: Collection[Found],
    given: Collection[Overlay],
    removed: Collection[Overlay],
    *,
    typed: str,
) -> None:
    """Raise `Refused` if an overlay would go that is neither given nor asked to be removed.

    typed: the command that is to be repeated. Raises `errors.KubeError`.
    """
    going = [overlay for overlay in lost(stale, given) if overlay not in removed]
    if not going:
        return
    keeping = [f"--overlay {overlay}" for overlay in going]
    if Overlay.USER_ROLES in going:
        keeping += await _lease_readers(client, stale)
    removing = " ".join(f"--remove-overlay {overlay}" for overlay in going)
    harm = "; ".join(LOSSES[overlay] for overlay in going)
    raise Refused(
        f"--overlay {listed(going)} was given before and is missing now: {harm}. To keep it, type "
        f"`{typed} {' '.join(keeping)}`. To remove it, add {removing} instead"
    )


async def _lease_readers(client: ApiReader, stale: Iterable[Found]) -> list[str]:
    """Return the option that keeps the group of those who read the Lease; none for everybody."""
    bound = next((one for one in stale if _is_readers(one)), None)
    if bound is None:
        return ["--lease-readers ''"]
    raw = await client.find(bound.resource.path(bound.namespace, bound.name))
    subjects = (read(raw).get("subjects") or []) if raw else []
    groups = [subject["name"] for subject in subjects]
    return [f"--lease-readers {shlex.quote(group)}" for group in groups if group != EVERYBODY]


def _is_readers(one: Found) -> bool:
    return (one.resource.kind, one.name) == ("RoleBinding", LEASE_READERS)
