"""Restore objects to their former state; objects that somebody recreated since are left alone."""

import asyncio
from collections.abc import Mapping
from typing import Any

from mpijob_elastic.install import changes, objects
from mpijob_elastic.install.changes import Change, Outcome
from mpijob_elastic.install.objects import Manifest, identity
from mpijob_elastic.install.refusal import ATTEMPTS, contended
from mpijob_elastic.install.server_side_apply import Applier
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import LEASES

# Counts the rollouts of a Deployment; the controller manager maintains it.
_REVISION = "deployment.kubernetes.io/revision"


async def restore(applier: Applier, before: Manifest) -> Change:
    """Restore the object, or create it if it is gone. Raises `Refused` and `errors.KubeError`."""
    for _ in range(ATTEMPTS):
        try:
            return await _restore(applier, before)
        except errors.Conflict:
            # Its controller wrote the status, or somebody recreated it: look again.
            await asyncio.sleep(0.1)
    raise contended(identity(before))


async def _restore(applier: Applier, before: Manifest) -> Change:
    one = identity(before)
    live = await applier.read(one)
    query = {"dryRun": "All"} if applier.dry_run else {}
    if live is None:
        path = applier.server.path(one).rpartition("/")[0]
        body = {**before, "metadata": objects.own_metadata(before)}
        await applier.client.create_object(path, query=query, body=body)
        return Change(identity=one, outcome=Outcome.CREATED)
    wanted = _on_top_of(live, before)
    change = changes.changed(one, live, wanted)
    if change.outcome is Outcome.UNCHANGED or one.kind == LEASES.kind:  # the holder of a Lease is no setting
        return Change(identity=one, outcome=Outcome.UNCHANGED)
    if live["metadata"]["uid"] != before["metadata"]["uid"]:
        return Change(identity=one, outcome=Outcome.SKIPPED, note="recreated by somebody since; left alone")
    after = await applier.client.replace_object(applier.server.path(one), query=query, body=wanted)
    return changes.changed(one, live, objects.read(after))


def _on_top_of(live: Mapping[str, Any], before: Manifest) -> dict[str, Any]:
    metadata = {**before["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}
    revision = live["metadata"].get("annotations", {}).get(_REVISION)
    if revision is not None:
        metadata["annotations"] = {**metadata.get("annotations", {}), _REVISION: revision}
    return {**before, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}
