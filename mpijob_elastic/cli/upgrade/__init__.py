"""`mpijob-elastic upgrade`: upgrade a cluster that runs mpi-operator v0.2.3 with live jobs, and roll back."""

import typer

from mpijob_elastic.cli.upgrade import cluster, jobs, scale

app = typer.Typer(
    name="upgrade",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Make a cluster with mpi-operator v0.2.3 and live jobs elastic, step by step, and roll that back.",
)
app.command(name="preflight")(cluster.preflight)
app.command(name="apply")(cluster.apply)
app.command(name="status")(cluster.status)
app.command(name="rollback")(cluster.rollback)
app.command(name="scale")(scale.scale)
app.command(name="adopt")(jobs.adopt)
app.command(name="convert")(jobs.convert)
