"""Files of a lab: one directory for each lab, named after it, readable by its owner only."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


def _xdg(variable: str, fallback: str) -> Path:
    """Return a base directory of the XDG specification; relative values must be ignored, says the specification."""
    value = Path(os.environ.get(variable, ""))
    base = value if value.is_absolute() else Path.home() / fallback
    return base / "mpijob-elastic" / "lab"


def cache_dir() -> Path:
    """Directory of built programs, shared by all labs of this user."""
    return _xdg("XDG_CACHE_HOME", ".cache")


def state_dir() -> Path:
    """Directory that holds one directory for each lab."""
    return _xdg("XDG_STATE_HOME", ".local/state")


@dataclass(frozen=True)
class Layout:
    """The files of one lab below `root`."""

    root: Path

    @classmethod
    def of(cls, name: str) -> "Layout":
        """Return the layout of the lab called `name`; raise LabError if that is no usable name."""
        if _NAME.fullmatch(name) is None:
            raise LabError(
                f"lab name {name!r} is not allowed: use up to 40 small letters, digits and dashes, "
                "and begin and end with a letter or digit."
            )
        return cls(state_dir() / name)

    @property
    def name(self) -> str:
        """Name of the lab."""
        return self.root.name

    @property
    def lock(self) -> Path:
        """File that a living supervisor holds locked."""
        return self.root / "lock"

    @property
    def state(self) -> Path:
        """The supervisor's state file."""
        return self.root / "lab.json"

    @property
    def logs(self) -> Path:
        """Directory with one log for each component, and the supervisor's."""
        return self.root / "logs"

    def log(self, component: str) -> Path:
        """Log of one component."""
        return self.logs / f"{component}.log"

    @property
    def pki(self) -> Path:
        """Directory of keys and certificates."""
        return self.root / "pki"

    @property
    def kubeconfigs(self) -> Path:
        """Directory of the kubeconfigs of components and ServiceAccounts."""
        return self.root / "kubeconfigs"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.root / "kubeconfig"

    @property
    def audit_log(self) -> Path:
        """JSON lines, one for each audited request (see manifests/audit-policy.yaml)."""
        return self.root / "audit.log"

    @property
    def etcd(self) -> Path:
        """Data directory of etcd."""
        return self.root / "etcd"

    @property
    def node(self) -> Path:
        """Files of the real node."""
        return self.root / "node"
