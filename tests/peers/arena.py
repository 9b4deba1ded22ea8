"""Arena, and what it prints."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lab.cluster import Cluster

Rows = list[dict[str, str]]


@dataclass(frozen=True, kw_only=True)
class Arena:
    """The program. home: has its charts, and in bin the kubectl that it calls, where it is to change anything."""

    program: Path
    home: Path
    kubeconfig: Path
    namespace: str

    def install(self, cluster: Cluster, charts: Path) -> None:
        """Put where Arena looks for it what its install.sh puts there."""
        (self.home / "charts").symlink_to(charts)
        (self.home / "bin").mkdir()
        for name in ("arena-kubectl", "kubectl"):
            (self.home / "bin" / name).symlink_to(cluster.binaries.kubectl)

    @property
    def env(self) -> dict[str, str]:
        """Its environment."""
        path = f"{self.home}/bin:{os.environ['PATH']}"
        ours = {
            "HOME": str(self.home),
            "KUBECONFIG": str(self.kubeconfig),
            "TMPDIR": str(self.home),
        }
        return {**os.environ, **ours, "PATH": path, "TZ": "UTC"}

    def command(self, *words: str) -> list[str]:
        """Return the whole command."""
        return [
            str(self.program),
            f"--config={self.kubeconfig}",
            f"--namespace={self.namespace}",
            *words,
        ]

    def run(self, *words: str) -> tuple[int, str]:
        """Return the exit code and what it prints; its log is on standard error."""
        done = subprocess.run(
            self.command(*words), env=self.env, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout or done.stderr

    def row(self, *words: str) -> dict[str, str]:
        """Return its row of the job in the list, or in another table of jobs."""
        [row] = table(self.run(*(words or ("list",)))[1].partition("\n\n")[0])
        return row

    def page(self, job: str = "train", kind: str = "mpijob") -> tuple[dict[str, str], Rows]:
        """Return its facts on the job, and its rows of pods."""
        return page(self.run("get", job, f"--type={kind}")[1])


def page(text: str) -> tuple[dict[str, str], Rows]:
    """Return the facts and the rows of pods of a page on a job."""
    facts, _, rest = text.partition("Instances:\n")
    return named(facts), [
        row for row in table(rest.partition("\n\n")[0]) if not row["NAME"].startswith("-")
    ]


def table(text: str) -> Rows:
    """Return the rows of a table by their headings."""
    header, *rows = (
        re.split(r"\s{2,}", line.strip()) for line in text.splitlines() if line.strip()
    )
    return [dict(zip(header, row, strict=True)) for row in rows]


def named(text: str) -> dict[str, str]:
    """Return what stands behind each `Name:`."""
    pairs = (line.partition(":") for line in text.splitlines() if line.strip())
    return {name: value.strip() for name, _, value in pairs}
