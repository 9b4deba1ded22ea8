"""`mpijob-elastic submit`."""

from collections.abc import Callable
from typing import Annotated, Literal, TypeVar

import typer

from mpijob_elastic.cli import work
from mpijob_elastic.cli.arena import SubmitCommand
from mpijob_elastic.cli.cluster_command import cluster_command
from mpijob_elastic.cli.creation_options import FollowLog, JobOutput, WaitForTraining, creation
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import Pairs, grouped, pairs
from mpijob_elastic.cli.scaling_options import Look, Timeout
from mpijob_elastic.cli.target import Where

Found = TypeVar("Found")
DryRun = Literal["client", "server", "none"]

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command(cls=SubmitCommand)
@cluster_command()
async def submit(
    *,
    command: Annotated[
        list[str] | None,
        typer.Argument(help="The launcher's command, after --.", show_default=False),
    ] = None,
    filename: Annotated[
        list[str] | None,
        typer.Option(
            "--filename",
            "-f",
            metavar="FILE",
            help="Create the MPIJob of this file, or of - for standard input, instead.",
            show_default=False,
        ),
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the job.", show_default=False)] = "",
    image: Annotated[
        str, typer.Option(help="Image of the launcher and the workers.", show_default=False)
    ] = "",
    workers: Annotated[int, typer.Option(min=1, help="Number of workers.")] = 1,
    min_workers: Annotated[
        int | None, typer.Option(min=1, help="Fewest workers: annotation min-replicas.")
    ] = None,
    max_workers: Annotated[
        int | None, typer.Option(min=1, help="Most workers: annotation max-replicas.")
    ] = None,
    sizes: Annotated[
        str, typer.Option(help="Allowed sizes, such as 2,4,8 or *4.", show_default=False)
    ] = "",
    gpus: Annotated[int, typer.Option(min=0, help="GPUs of each worker.")] = 0,
    cpu: Annotated[
        str, typer.Option(help="CPUs of each pod, such as 4 or 500m.", show_default=False)
    ] = "",
    memory: Annotated[
        str, typer.Option(help="Memory of each pod, such as 8Gi.", show_default=False)
    ] = "",
    env: Annotated[
        Pairs,
        typer.Option("--env", "-e", metavar="NAME=VALUE", help="Environment variable; repeatable."),
    ] = None,
    data: Annotated[
        Pairs,
        typer.Option(
            "--data", "-d", metavar="CLAIM:PATH", help="Volume claim to mount at PATH; repeatable."
        ),
    ] = None,
    working_dir: Annotated[
        str, typer.Option(help="Working directory. Default: the image's.", show_default=False)
    ] = "",
    np: Annotated[
        int | None,
        typer.Option(min=1, help="Start the command by horovodrun, with this many ranks at first."),
    ] = None,
    driver: Annotated[
        Literal["horovod", "mpi"],
        typer.Option(
            help="What starts the ranks: horovodrun, or an mpirun that elastic.sh starts again "
            "with each size."
        ),
    ] = "horovod",
    slots: Annotated[
        int | None, typer.Option(min=1, help="Ranks per worker. Default: one per GPU, or 1.")
    ] = None,
    queue: Annotated[str, typer.Option(help="Queue in Kueue.", show_default=False)] = "",
    priority: Annotated[
        str, typer.Option("--priority", "-p", help="PriorityClass of the pods.", show_default=False)
    ] = "",
    gang: Annotated[
        str,
        typer.Option(
            help="Gang scheduler: volcano, coscheduling, koordinator, kubernetes or "
            "kubernetes-workers.",
            show_default=False,
        ),
    ] = "",
    clean_pod_policy: Annotated[
        Literal["None", "Running", "All"],
        typer.Option(help="Pods that are deleted once the job has ended."),
    ] = "Running",
    label: Annotated[
        Pairs,
        typer.Option(
            "--label", "-l", metavar="KEY=VALUE", help="Label of job and pods; repeatable."
        ),
    ] = None,
    annotation: Annotated[
        Pairs,
        typer.Option(
            "--annotation",
            "-a",
            metavar="KEY=VALUE",
            help="Annotation of job and pods; repeatable.",
        ),
    ] = None,
    launcher_annotation: Annotated[
        Pairs,
        typer.Option(metavar="KEY=VALUE", help="Annotation of the launcher's pod; repeatable."),
    ] = None,
    worker_annotation: Annotated[
        Pairs, typer.Option(metavar="KEY=VALUE", help="Annotation of the workers; repeatable.")
    ] = None,
    selector: Annotated[
        Pairs,
        typer.Option(metavar="KEY=VALUE", help="Label of the workers' nodes; repeatable."),
    ] = None,
    launcher_selector: Annotated[
        Pairs,
        typer.Option(metavar="KEY=VALUE", help="Label of the launcher's node; repeatable."),
    ] = None,
    toleration: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE:EFFECT,OPERATOR",
            help="Taint that the pods tolerate, or all; repeatable.",
        ),
    ] = None,
    device: Annotated[
        Pairs,
        typer.Option(
            metavar="RESOURCE=NUMBER",
            help="Devices of each worker, such as amd.com/gpu=1; repeatable.",
        ),
    ] = None,
    data_dir: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST-PATH[:PATH]", help="Path of the node to mount at PATH; repeatable."
        ),
    ] = None,
    shm_size: Annotated[
        str,
        typer.Option(
            help="Size of /dev/shm in the workers, such as 2Gi; it counts as memory.",
            show_default=False,
        ),
    ] = "",
    image_pull_secret: Annotated[
        list[str] | None, typer.Option(help="Secret to pull the image with; repeatable.")
    ] = None,
    image_pull_policy: Annotated[
        Literal["Always", "IfNotPresent", "Never"] | None,
        typer.Option(help="When to pull the image. Default: the API server's."),
    ] = None,
    scheduler: Annotated[str, typer.Option(help="Scheduler of the pods.", show_default=False)] = "",
    rdma: Annotated[
        bool, typer.Option("--rdma", help="Give each pod rdma/hca and the capability IPC_LOCK.")
    ] = False,
    host_network: Annotated[
        bool, typer.Option("--host-network", help="Use the network of the node.")
    ] = False,
    host_ipc: Annotated[bool, typer.Option("--host-ipc", help="Use the IPC of the node.")] = False,
    host_pid: Annotated[
        bool, typer.Option("--host-pid", help="See the processes of the node.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Print the job; contact no API server. With --dry-run=server, the API server and "
            "its webhooks try the job.",
        ),
    ] = False,
    server_dry_run: Annotated[bool, typer.Option("--server-dry-run", hidden=True)] = False,
    wait: WaitForTraining = False,
    timeout: Timeout = "10m",
    look: Look = True,
    logs: FollowLog = False,
    output: JobOutput = "text",
    where: Where,
) -> Exit:
    """Create a job from options that are named as those of `arena submit etjob` and `mpijob`, or from a file.

    For example:

    - `mpijob-elastic submit --name train --image IMAGE --workers 2 --np 2 --max-workers 4 -- python train.py`:
      horovodrun starts a rank in each worker

    - `mpijob-elastic submit --name train --image IMAGE --workers 2 --driver mpi -- python train.py`: elastic.sh starts
      mpirun, which starts a rank in each slot; you may also give the mpirun yourself, and `--np` says how many slots
      the first start waits for

    - `mpijob-elastic submit --name train --image IMAGE --gpus 1 'horovodrun -np $workers ... python train.py'`: a shell
      command line, in which `$workers` and `$gpus` are set as in Arena; so are `$minWorkers` and `$maxWorkers`, if you
      give the bounds or the command line names them

    - `kubectl mpijob-elastic submit --name train --image IMAGE --np 1 --dry-run -- python train.py > job.yaml`

    - `mpijob-elastic submit -f job.yaml --logs`: the MPIJob of a file, and its log until it ends

    A command of several words runs without a shell. A single word is a shell command line, in which
    line breaks become spaces. `submit` waits for nothing, unless you give `--wait` or `--logs`.

    Each option of Arena v0.15.5 has its meaning there, or is refused with what to type instead:
    docs/arena.md lists them.

    Exit codes: 0 done; 1 refused, for example because the name exists, or no right, or with --logs
    the job failed; 2 wrong usage; 3 finished differently (with --wait alone, the job has ended);
    4 still going at the timeout of --wait alone, or no answer from the API server; 130 Ctrl-C.
    """
    asked = creation(
        _dry_run(client=dry_run, server=server_dry_run),
        output,
        wait=wait,
        timeout=timeout,
        look=look,
        logs=logs,
    )
    if filename:
        [file] = filename
        return await work.submit.submit_file(where, file, asked)
    words = work.submit.Words(
        name=name,
        image=image,
        command=command or (),
        workers=workers,
        min_workers=min_workers,
        max_workers=max_workers,
        sizes=sizes,
        gpus=gpus,
        cpu=cpu,
        memory=memory,
        env=pairs(env, "=", "--env"),
        data=grouped(data, ":", "--data"),
        working_dir=working_dir,
        np=np,
        driver=driver,
        slots=slots,
        queue=queue,
        priority=priority,
        gang=gang,
        clean_pod_policy=clean_pod_policy,
        pods=work.pod_fields.PodWords(
            labels=pairs(label, "=", "--label"),
            annotations=pairs(annotation, "=", "--annotation"),
            launcher_annotations=pairs(launcher_annotation, "=", "--launcher-annotation"),
            worker_annotations=pairs(worker_annotation, "=", "--worker-annotation"),
            selector=pairs(selector, "=", "--selector"),
            launcher_selector=pairs(launcher_selector, "=", "--launcher-selector"),
            tolerations=_parsed(work.pod_fields.toleration, toleration, "--toleration"),
            devices=pairs(device, "=", "--device"),
            data_dirs=_parsed(work.pod_fields.data_dir, data_dir, "--data-dir"),
            shm_size=shm_size,
            pull_secrets=image_pull_secret or (),
            pull_policy=image_pull_policy or "",
            scheduler=scheduler,
            rdma=rdma,
            host_network=host_network,
            host_ipc=host_ipc,
            host_pid=host_pid,
        ),
    )

    return await work.submit.submit(where, words, asked)


def _dry_run(*, client: bool, server: bool) -> DryRun:
    if server:
        return "server"
    return "client" if client else "none"


def _parsed(
    parse: Callable[[str], Found], given: list[str] | None, option: str
) -> tuple[Found, ...]:
    """Return each text parsed. Raises typer.BadParameter for what `parse` refuses."""
    try:
        return tuple(parse(text) for text in dict.fromkeys(given or ()))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
