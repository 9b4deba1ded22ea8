"""The modules that do the work of the commands.

Each is imported when a command first uses it (PEP 562), because `--help` and the completion of
options need none of them: they load the client of the API server, which takes a second on a slow
machine. A type checker sees plain imports.
"""

from types import ModuleType
from typing import TYPE_CHECKING

from mpijob_elastic.loading import load

#: The module of each name below.
PLACES = {
    "adopt": "upgrade.adopt",
    "at_work": "mpijob_elastic.cli.jobs.at_work",
    "api_server": "mpijob_elastic.install.server",
    "bounds_request": "mpijob_elastic.cli.jobs.bounds_request",
    "canary": "upgrade.canary",
    "client": "mpijob_elastic.kube.client",
    "connection": "mpijob_elastic.cli.connection",
    "controller_service": "mpijob_elastic.services.controller",
    "conversion_files": "upgrade.conversion_files",
    "creation": "mpijob_elastic.cli.jobs.creation",
    "dashboard": "mpijob_elastic.cli.dashboard.server",
    "deletion": "mpijob_elastic.cli.jobs.deletion",
    "explain": "mpijob_elastic.cli.jobs.explain",
    "findings": "upgrade.findings",
    "formats": "mpijob_elastic.cli.jobs.formats",
    "history": "mpijob_elastic.cli.jobs.history",
    "image": "mpijob_elastic.install.image",
    "installer": "mpijob_elastic.install.installer",
    "optional_parts": "mpijob_elastic.install.optional_parts",
    "job_events": "mpijob_elastic.cli.jobs.job_events",
    "logs": "mpijob_elastic.cli.jobs.logs",
    "pod_fields": "mpijob_elastic.cli.jobs.pod_fields",
    "pods": "mpijob_elastic.cli.jobs.pods",
    "preflight": "upgrade.preflight",
    "record": "upgrade.record",
    "resubmission": "mpijob_elastic.cli.jobs.resubmission",
    "rows": "mpijob_elastic.cli.jobs.rows",
    "scale": "upgrade.scale",
    "scripted": "mpijob_elastic.cli.jobs.scripted",
    "several": "mpijob_elastic.cli.jobs.several",
    "show": "mpijob_elastic.cli.jobs.show",
    "size_request": "mpijob_elastic.cli.jobs.size_request",
    "snapshot": "mpijob_elastic.cli.jobs.snapshot",
    "status": "mpijob_elastic.cli.installation.status",
    "submit": "mpijob_elastic.cli.jobs.submit",
    "table": "mpijob_elastic.cli.jobs.table",
    "top": "mpijob_elastic.cli.jobs.top",
    "uninstall": "upgrade.uninstall",
    "watch": "mpijob_elastic.cli.jobs.watch",
    "webhook_service": "mpijob_elastic.services.webhook",
    "write_change": "mpijob_elastic.cli.jobs.write_change",
}

if TYPE_CHECKING:
    from mpijob_elastic.cli import connection
    from mpijob_elastic.cli.dashboard import server as dashboard
    from mpijob_elastic.cli.installation import status
    from mpijob_elastic.cli.jobs import (
        at_work,
        bounds_request,
        creation,
        deletion,
        explain,
        formats,
        history,
        job_events,
        logs,
        pod_fields,
        pods,
        resubmission,
        rows,
        scripted,
        several,
        show,
        size_request,
        snapshot,
        submit,
        table,
        top,
        watch,
        write_change,
    )
    from mpijob_elastic.install import image, installer, optional_parts
    from mpijob_elastic.install import server as api_server
    from mpijob_elastic.kube import client
    from mpijob_elastic.services import controller as controller_service
    from mpijob_elastic.services import webhook as webhook_service
    from upgrade import (
        adopt,
        canary,
        conversion_files,
        findings,
        preflight,
        record,
        scale,
        uninstall,
    )
else:

    def __getattr__(name: str) -> ModuleType:
        if name not in PLACES:
            raise AttributeError(f"{__name__} has no module {name}")
        return load(PLACES[name])
