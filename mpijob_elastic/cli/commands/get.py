"""`mpijob-elastic get`."""

from collections.abc import Callable
from typing import Annotated, TypeVar

import typer

from mpijob_elastic.cli import complete, work
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import IgnoreNotFound, NoHeaders, Selector, job_names_or_all
from mpijob_elastic.cli.target import Where

Parsed = TypeVar("Parsed")

_PLAIN = ("table", "wide", "json", "yaml", "name")
_OF_FIELDS = ("jsonpath", "custom-columns")
_FORMS = (*_PLAIN, "jsonpath=TEMPLATE", "custom-columns=HEADER:PATH,...")
# What kubectl has and is not here, with what to type instead.
_INSTEAD = {
    "go-template": "write the template as -o jsonpath=..., or type kubectl get mpijobs",
    "go-template-file": "write the template as -o jsonpath=..., or type kubectl get mpijobs",
    "jsonpath-file": 'type -o jsonpath="$(cat FILE)"',
    "jsonpath-as-json": "type -o json",
    "custom-columns-file": 'type -o custom-columns="$(cat FILE)" with one line of HEADER:PATH,...',
}


def _output(text: str) -> str:
    """Return a format that there is. Raises typer.BadParameter."""
    kind, equals, _ = text.partition("=")
    if text in _PLAIN or (equals and kind in _OF_FIELDS):
        return text
    instead = _INSTEAD.get(kind)
    if kind in _OF_FIELDS:
        instead = f"write what to print behind an equals sign: -o {kind}=..."
    if instead:
        raise typer.BadParameter(f"{kind}: {instead}")
    raise typer.BadParameter(f"{kind!r} is not one of {', '.join(map(repr, _FORMS))}")


def _formats(incomplete: str) -> list[str]:
    """Return the formats that begin with what was typed."""
    beginnings = [*_PLAIN, *(f"{kind}=" for kind in _OF_FIELDS)]
    return [one for one in beginnings if one.startswith(incomplete)]


@cluster_command(all_namespaces=True, several_contexts=True)
async def get(
    *,
    job: Annotated[
        list[str] | None,
        typer.Argument(
            help="Show only these jobs; a single job is shown with all details.",
            callback=job_names_or_all,
            autocompletion=complete.jobs,
            show_default=False,
        ),
    ] = None,
    where: list[Where],
    selector: Selector = "",
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Print the rows, then a row after each change.")
    ] = False,
    sort_by: Annotated[
        str,
        typer.Option(
            metavar="PATH", help="Sort by this field of -o json: .gpus.", show_default=False
        ),
    ] = "",
    no_headers: NoHeaders = False,
    ignore_not_found: IgnoreNotFound = False,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FORMAT",
            callback=_output,
            autocompletion=_formats,
            help=f"Output format: {', '.join(_FORMS)}.",
        ),
    ] = "table",
) -> Exit:
    r"""List jobs with their desired, Ready, published and draining workers, or show one job in full.

    For example:

    - `mpijob-elastic get`: the jobs of the context's namespace

    - `mpijob-elastic list -A -o wide`: the jobs of all namespaces, with duration, the GPUs that their pods hold, queue,
      priority, bounds and launcher; `list` is another name for `get`

    - `mpijob-elastic get -A --context east --context west`: the jobs of two clusters in one table

    - `mpijob-elastic get train -n ml`: a job, its workers and the controller's next steps; with `-o wide`, each worker
      of a large job, too

    - `mpijob-elastic get -l team=vision --sort-by .gpus --no-headers`: the jobs with this label, those with fewest
      GPUs first

    - `mpijob-elastic get train eval -w`: the rows of two jobs, and a row after each change, until Ctrl-C

    - `mpijob-elastic get -o jsonpath='{range .items[*]}{.name}{"\t"}{.ready}{"\n"}{end}'`: fields of `-o json`

    - `mpijob-elastic get -o custom-columns=NAME:.name,HOSTS:.hosts`: a table of your own

    - `kubectl mpijob-elastic get train -o json`: the same for programs, as a kubectl plugin

    PROGRESS and ETA need the right to exec into workers: a look reads the line that the program writes. `get JOB` also
    says where the job's GPU-seconds went. "-" is what no program wrote.

    JSONPath is kubectl's, and reads the fields that `-o json` prints, and `.metadata.name`, `.metadata.namespace` and
    `.metadata.creationTimestamp`. `kubectl get mpijobs` has `.spec` and `.status`. With one name and `--no-headers` or `-w`, the job is a row as in the list.

    Clusters that cannot be read are named in a line; the others are shown.

    Exit codes: 0 done; 1 no such job, or no right to read it; 2 wrong usage; 4 no answer from the
    API server; 130 Ctrl-C.
    """
    jobs = job or []
    _refuse_together(jobs, where, selector=selector, watch=watch)
    write = arrange = None
    if output.partition("=")[0] in _OF_FIELDS:
        write = _usable("--output", lambda: work.formats.writer(output))
    if sort_by:
        arrange = _usable("--sort-by", lambda: work.formats.sorter(sort_by))
    asked = work.show.JobsAsked(
        jobs=jobs,
        missing_is_fine=ignore_not_found,
        labels=selector,
        output=output,
        headers=not no_headers,
        arrange=arrange,
        write=write,
    )
    if watch:
        return await work.rows.watch(where[0], asked)
    return await work.show.get(where, asked)


def _refuse_together(jobs: list[str], where: list[Where], *, selector: str, watch: bool) -> None:
    """Raise typer.BadParameter for options that do not go together."""
    if jobs and where[0].all_namespaces:
        raise typer.BadParameter(
            "a job is in one namespace: choose the namespace with -n", param_hint="-A"
        )
    if jobs and len(where) > 1:
        raise typer.BadParameter(
            "a job is in one cluster: choose the cluster with one --context", param_hint="--context"
        )
    if jobs and selector:
        raise typer.BadParameter("give names or a selector, not both", param_hint="--selector")
    if watch and len(where) > 1:
        raise typer.BadParameter("only one cluster can be watched", param_hint="--watch")


def _usable(option: str, parse: Callable[[], Parsed]) -> Parsed:
    """Return what `parse` makes of an option. Raises typer.BadParameter for what it refuses."""
    try:
        return parse()
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
