"""Which objects of the cluster belong to what a user asked for: one job, one namespace's jobs, or all jobs."""

from __future__ import annotations

from dataclasses import dataclass

from mpijob_elastic import names


@dataclass(frozen=True, kw_only=True)
class Selectors:
    """The selectors of a list or a watch, None for none of that kind."""

    label: str | None = None
    field: str | None = None

    def query(self) -> dict[str, str]:
        """As parameters of a request."""
        given = {"labelSelector": self.label, "fieldSelector": self.field}
        return {name: value for name, value in given.items() if value}


@dataclass(frozen=True, kw_only=True)
class Selection:
    """namespace: None for all. job: None for every job there."""

    namespace: str | None
    job: str | None = None

    def __str__(self) -> str:
        where = f"namespace {self.namespace}" if self.namespace else "any namespace"
        return f"MPIJob {self.job} in {where}" if self.job else f"MPIJob in {where}"

    @property
    def jobs(self) -> Selectors:
        """The MPIJobs."""
        return Selectors(field=_named(self.job) if self.job else None)

    @property
    def pods(self) -> Selectors:
        """Their pods."""
        mine = f",{names.LABEL_JOB_NAME}={self.job}" if self.job else ""
        return Selectors(label=names.POD_SELECTOR + mine)

    @property
    def configs(self) -> Selectors:
        """Their ConfigMaps."""
        return Selectors(field=_named(names.config_map(self.job))) if self.job else Selectors(label=names.LABEL_APP)

    @property
    def roles(self) -> Selectors:
        """The Roles of their launchers."""
        return Selectors(field=_named(names.launcher(self.job))) if self.job else Selectors(label=names.LABEL_APP)


def _named(name: str) -> str:
    return f"metadata.name={name}"
