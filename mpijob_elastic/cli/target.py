"""The cluster and the namespace that a command was given, as kubectl has them.

`connection` reaches them; this module loads no client, because `--help` needs none.
https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/
"""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Where:
    """The options that the user gave; None for an absent option."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None
    all_namespaces: bool = False


def kubeconfig_file(given: Path | None) -> Path | None:
    """Return the kubeconfig to read: --kubeconfig, $KUBECONFIG, or the home directory's.

    None: use the service account of this pod.
    """
    if given is not None:
        return given
    named = os.environ.get("KUBECONFIG")
    usual = Path.home() / ".kube" / "config"
    if named:
        return Path(named)
    return usual if usual.exists() else None
