"""`mpijob-elastic submit`: the words of `arena submit etjob`."""

import asyncio
from typing import Annotated, Literal

import typer

from mpijob_elastic.cli.options import Context, Kubeconfig, Namespace, Pairs, pairs

Command = Annotated[list[str], typer.Argument(help="The launcher's command, after --.", show_default=False)]
Name = Annotated[str, typer.Option(help="Name of the job.", show_default=False)]
Image = Annotated[str, typer.Option(help="Image of the launcher and the workers.", show_default=False)]
Output = Annotated[
    Literal["text", "yaml", "json", "name"], typer.Option("--output", "-o", help="What to print of the job.")
]


def submit(
    command: Command,
    *,
    name: Name,
    image: Image,
    workers: Annotated[int, typer.Option(min=1, help="Workers.")] = 1,
    min_workers: Annotated[int | None, typer.Option(min=1, help="The fewest workers, annotation min-replicas.")] = None,
    max_workers: Annotated[int | None, typer.Option(min=1, help="The most workers, annotation max-replicas.")] = None,
    sizes: Annotated[str, typer.Option(help="The only sizes, such as 2,4,8 or *4.", show_default=False)] = "",
    gpus: Annotated[int, typer.Option(min=0, help="GPUs of each worker.")] = 0,
    cpu: Annotated[str, typer.Option(help="CPUs of each pod, such as 4 or 500m.", show_default=False)] = "",
    memory: Annotated[str, typer.Option(help="Memory of each pod, such as 8Gi.", show_default=False)] = "",
    env: Annotated[Pairs, typer.Option("--env", "-e", metavar="NAME=VALUE", help="A variable; repeatable.")] = None,
    data: Annotated[
        Pairs, typer.Option("--data", "-d", metavar="CLAIM:PATH", help="A volume claim to mount; repeatable.")
    ] = None,
    working_dir: Annotated[str, typer.Option(help="Working directory. Default: the image's.", show_default=False)] = "",
    np: Annotated[
        int | None, typer.Option(min=1, help="Let horovodrun start the command, with so many ranks at first.")
    ] = None,
    slots: Annotated[int | None, typer.Option(min=1, help="Ranks in a worker. Default: one for each GPU.")] = None,
    queue: Annotated[str, typer.Option(help="Kueue's queue.", show_default=False)] = "",
    priority: Annotated[
        str, typer.Option("--priority", "-p", help="PriorityClass of the pods.", show_default=False)
    ] = "",
    gang: Annotated[
        str,
        typer.Option(help="Scheduler of gangs: volcano, coscheduling, koordinator, kubernetes.", show_default=False),
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the job; ask no API server.")] = False,
    output: Output = "text",
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Create a job from the words of `arena submit etjob`.

    For example:

    - `mpijob-elastic submit --name train --image IMAGE --workers 2 --np 2 --max-workers 4 -- python train.py`:
      horovodrun starts a rank in each worker

    - `mpijob-elastic submit --name train --image IMAGE --gpus 1 'horovodrun -np $workers ... python train.py'`: a line
      for the shell, which knows `$workers`, `$gpus`, `$minWorkers` and `$maxWorkers` as in Arena

    - `kubectl mpijob-elastic submit --name train --image IMAGE --np 1 --dry-run -- python train.py > job.yaml`

    A command of several words runs without a shell; line breaks in a single one become spaces. `submit` does not wait
    until the job runs.

    Exit codes: 0 done; 1 refused, such as a name that exists, or no right; 2 wrong usage; 4 no answer of the API
    server; 130 Ctrl-C.
    """
    from mpijob_elastic.cli.jobs.submit import Words, submit  # noqa: PLC0415 - --help need not load the client
    from mpijob_elastic.cli.target import Where  # noqa: PLC0415

    words = Words(
        name=name,
        image=image,
        command=command,
        workers=workers,
        min_workers=min_workers,
        max_workers=max_workers,
        sizes=sizes,
        gpus=gpus,
        cpu=cpu,
        memory=memory,
        env=pairs(env, "=", "--env"),
        data=pairs(data, ":", "--data"),
        working_dir=working_dir,
        np=np,
        slots=slots,
        queue=queue,
        priority=priority,
        gang=gang,
    )
    where = Where(kubeconfig=kubeconfig, context=context, namespace=namespace)
    raise typer.Exit(asyncio.run(submit(where, words, dry_run=dry_run, output=output)))
