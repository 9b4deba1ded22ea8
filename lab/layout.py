"""Files of a lab: one directory for each lab, named after it, readable by its owner only."""

import os
import re
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


class Layout:
    """The files of one lab below `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.name = root.name
        self.lock = root / "lock"  # a living supervisor holds it locked
        self.state = root / "lab.json"  # written by the supervisor
        self.logs = root / "logs"  # one for each component, and the supervisor's
        self.pki = root / "pki"
        self.kubeconfigs = root / "kubeconfigs"  # of components and ServiceAccounts
        self.kubeconfig = root / "kubeconfig"  # the administrator's
        self.audit_log = (
            root / "audit.log"
        )  # a line of JSON for each audited request (manifests/audit-policy.yaml)
        self.etcd = root / "etcd"  # its data
        self.node = root / "node"  # files of the real nodes

    @classmethod
    def of(cls, name: str) -> "Layout":
        """Return the layout of the lab called `name`; raise LabError if that is no usable name."""
        if _NAME.fullmatch(name) is None:
            raise LabError(
                f"lab name {name!r} is not allowed: use up to 40 small letters, digits and dashes, "
                "and begin and end with a letter or digit."
            )
        return cls(state_dir() / name)

    def log(self, component: str) -> Path:
        """Log of one component."""
        return self.logs / f"{component}.log"


def name_option(name: str) -> str:
    """Return the option that names a lab, with a space before it; the default lab needs none."""
    return "" if name == "default" else f" --name {name}"
