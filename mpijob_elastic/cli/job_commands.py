"""The commands that create, change and delete jobs, with the user's own rights."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from mpijob_elastic.cli import complete
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.options import (
    AllNamespaces,
    Context,
    Job,
    Kubeconfig,
    Namespace,
    Pairs,
    Yes,
    pairs,
    seconds,
)
from mpijob_elastic.cli.target import Where

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpijob_elastic.cli.jobs.change import Patience
    from mpijob_elastic.cli.jobs.changes import Asked

Found = TypeVar("Found")
Count = Annotated[
    int | None,
    typer.Option(min=1, help="Workers to add or remove. Default: 1.", show_default=False),
]
To = Annotated[
    int | None, typer.Option(min=1, help="The new size, instead of --count.", show_default=False)
]
Wait = Annotated[bool, typer.Option(help="Wait until it is done, and show the progress.")]
Timeout = Annotated[
    str,
    typer.Option(
        metavar="DURATION",
        callback=lambda text: str(seconds(text)),
        help="The longest time to wait, such as 90s.",
    ),
]
Env = Annotated[
    Pairs,
    typer.Option(
        metavar="NAME=VALUE", help="Variable for --script; repeatable.", show_default=False
    ),
]
Look = Annotated[
    bool,
    typer.Option(
        "--exec/--no-exec", help="Look for ranks in the workers by exec, with your own rights."
    ),
]


def submit(
    command: Annotated[
        list[str], typer.Argument(help="The launcher's command, after --.", show_default=False)
    ],
    *,
    name: Annotated[str, typer.Option(help="Name of the job.", show_default=False)],
    image: Annotated[
        str, typer.Option(help="Image of the launcher and the workers.", show_default=False)
    ],
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
            help="Gang scheduler: volcano, coscheduling, koordinator or kubernetes.",
            show_default=False,
        ),
    ] = "",
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
        bool, typer.Option("--dry-run", help="Print the job; contact no API server.")
    ] = False,
    output: Annotated[
        Literal["text", "yaml", "json", "name"],
        typer.Option("--output", "-o", help="What to print about the job."),
    ] = "text",
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Create a job from options that are named as those of `arena submit etjob`.

    For example:

    - `mpijob-elastic submit --name train --image IMAGE --workers 2 --np 2 --max-workers 4 -- python train.py`:
      horovodrun starts a rank in each worker

    - `mpijob-elastic submit --name train --image IMAGE --gpus 1 'horovodrun -np $workers ... python train.py'`: a shell
      command line, in which `$workers` and `$gpus` are set as in Arena; so are `$minWorkers` and `$maxWorkers`, if you
      give the bounds or the command line names them

    - `kubectl mpijob-elastic submit --name train --image IMAGE --np 1 --dry-run -- python train.py > job.yaml`

    A command of several words runs without a shell. A single word is a shell command line, in which
    line breaks become spaces. `submit` does not wait until the job runs.

    Each option of Arena v0.15.5 has its meaning there, or is refused with what to type instead:
    docs/arena.md lists them.

    Exit codes: 0 done; 1 refused, for example because the name exists, or no right; 2 wrong usage;
    4 no answer from the API server; 130 Ctrl-C.
    """
    from mpijob_elastic.cli.jobs import pod_fields  # noqa: PLC0415 - --help need not load the client
    from mpijob_elastic.cli.jobs.pod_fields import PodWords  # noqa: PLC0415
    from mpijob_elastic.cli.jobs.submit import Words, submit  # noqa: PLC0415

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
        pods=PodWords(
            labels=pairs(label, "=", "--label"),
            annotations=pairs(annotation, "=", "--annotation"),
            launcher_annotations=pairs(launcher_annotation, "=", "--launcher-annotation"),
            worker_annotations=pairs(worker_annotation, "=", "--worker-annotation"),
            selector=pairs(selector, "=", "--selector"),
            launcher_selector=pairs(launcher_selector, "=", "--launcher-selector"),
            tolerations=_parsed(pod_fields.toleration, toleration, "--toleration"),
            devices=pairs(device, "=", "--device"),
            data_dirs=_parsed(pod_fields.data_dir, data_dir, "--data-dir"),
            pull_secrets=image_pull_secret or (),
            pull_policy=image_pull_policy or "",
            scheduler=scheduler,
            rdma=rdma,
            host_network=host_network,
            host_ipc=host_ipc,
            host_pid=host_pid,
        ),
    )
    where = Where(kubeconfig=kubeconfig, context=context, namespace=namespace)
    raise typer.Exit(asyncio.run(submit(where, words, dry_run=dry_run, output=output)))


def scaleout(
    job: Job,
    *,
    count: Count = None,
    to: To = None,
    pod: Annotated[
        list[str] | None,
        typer.Option(
            help="Parked worker to bring back: its number or its pod; repeatable.",
            autocompletion=complete.parked,
        ),
    ] = None,
    script: Annotated[
        str,
        typer.Option(
            metavar="COMMAND",
            help="Shell command to run in the launcher once all workers train.",
            show_default=False,
        ),
    ] = "",
    env: Env = None,
    wait: Wait = True,
    timeout: Timeout = "10m",
    look: Look = True,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Add workers to a running job, and wait until a rank runs in each worker.

    For example:

    - `mpijob-elastic scaleout train --count 2`: add two workers

    - `mpijob-elastic scaleout mpijob/train --to 8 --timeout 5m -n ml`: eight workers; wait for at most 5 minutes

    - `mpijob-elastic scaleout train --pod 1`: bring back train-worker-1, which is parked

    - `mpijob-elastic scaleout train --env SIZE=3 --script 'sh grown.sh $SIZE'`: run the script in the launcher afterwards

    - `kubectl mpijob-elastic scaleout train --no-wait`: add one worker, and do not wait

    Parked workers come back first. The command is refused if an HPA, KEDA, the annotation
    `mpijob-elastic/autoscale` or a GitOps tool sets the size. Ctrl-C and the timeout undo nothing.
    A script runs by exec with your own rights, within the timeout; its output is shown on standard
    error.

    Exit codes: 0 done; 1 refused, no such job, or no right; 2 wrong usage; 3 finished differently
    (the size was set back, or all workers train but the script failed); 4 still going at the
    timeout, or no answer from the API server; 130 Ctrl-C.
    """
    from mpijob_elastic.cli.jobs.changes import Asked  # noqa: PLC0415 - --help need not load the client

    _refuse_two(count, to, pod)
    if script and not wait:
        raise typer.BadParameter(
            "the script runs once all workers train: leave out --no-wait", param_hint="--script"
        )
    where = Where(kubeconfig=kubeconfig, context=context, namespace=namespace)
    patience = _patience(timeout, wait=wait, look=look)
    asked = Asked(grows=True, count=count, to=to, pods=pod or ())
    raise typer.Exit(_scaled(where, job, asked, patience, script, env))


def scalein(
    job: Job,
    *,
    count: Count = None,
    to: To = None,
    pod: Annotated[
        list[str] | None,
        typer.Option(
            help="Worker to remove: its number or its pod; repeatable.",
            autocompletion=complete.wanted,
        ),
    ] = None,
    node: Annotated[
        list[str] | None, typer.Option(help="Remove all workers on this node; repeatable.")
    ] = None,
    script: Annotated[
        str,
        typer.Option(
            metavar="COMMAND",
            help="Shell command to run in the launcher before workers leave.",
            show_default=False,
        ),
    ] = "",
    env: Env = None,
    wait: Wait = True,
    timeout: Timeout = "10m",
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Remove workers from a running job, and wait until they are gone.

    Without --pod and --node, the workers with the highest numbers leave.

    For example:

    - `mpijob-elastic scalein train --count 2`: remove two workers

    - `mpijob-elastic scalein mpijob/train --to 2 -n ml`: keep two workers

    - `mpijob-elastic scalein train --pod 1 --pod 3`: remove train-worker-1 and train-worker-3

    - `mpijob-elastic scalein train --node gpu-7`: remove the workers on that node

    - `mpijob-elastic scalein train --env STEP=last --script 'sh save.sh $STEP'`: run the script in the launcher first

    - `kubectl mpijob-elastic scalein train --no-wait`: remove one worker, and do not wait

    A removed worker whose number is below that of a worker that stays is parked by the annotation
    `mpijob-elastic/parked`; `scaleout` brings parked workers back first. Each worker leaves the
    host list first, and is deleted when its rank has left or when `mpijob-elastic/drain-timeout` is
    over. The command is refused in the same cases as `scaleout`. Ctrl-C and the timeout undo
    nothing. A script runs by exec with your own rights, within the timeout; its output is shown on
    standard error. If the script fails, no worker leaves.

    Exit codes: 0 done; 1 refused, no such job, no right, or the script failed; 2 wrong usage; 3
    finished differently (a drain timeout was over); 4 still going at the timeout, or no answer from
    the API server; 130 Ctrl-C.
    """
    from mpijob_elastic.cli.jobs.changes import Asked  # noqa: PLC0415 - --help need not load the client

    _refuse_two(count, to, pod, node)
    where = Where(kubeconfig=kubeconfig, context=context, namespace=namespace)
    patience = _patience(timeout, wait=wait)
    asked = Asked(grows=False, count=count, to=to, pods=pod or (), nodes=node or ())
    raise typer.Exit(_scaled(where, job, asked, patience, script, env))


def suspend(
    job: Job,
    *,
    wait: Wait = True,
    timeout: Timeout = "10m",
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Stop a job but keep it, and wait until none of its pods run.

    For example:

    - `mpijob-elastic suspend train`: training ends; `resume` starts it again from its last checkpoint

    - `kubectl mpijob-elastic suspend mpijob/train --no-wait -n ml`: do not wait

    The command sets the annotation `mpijob-elastic/suspend`. The job shrinks first, so its workers
    drain. Ctrl-C and the timeout undo nothing.

    Exit codes: 0 done; 1 refused, no such job, or no right; 2 wrong usage; 3 finished differently
    (the job has ended); 4 still going at the timeout, or no answer from the API server; 130 Ctrl-C.
    """
    from mpijob_elastic.cli.jobs.change import change  # noqa: PLC0415 - --help need not load the client
    from mpijob_elastic.cli.jobs.changes import suspending  # noqa: PLC0415

    where = Where(kubeconfig=kubeconfig, context=context, namespace=namespace)
    raise typer.Exit(asyncio.run(change(where, job, suspending, _patience(timeout, wait=wait))))


def resume(
    job: Job,
    *,
    wait: Wait = True,
    timeout: Timeout = "10m",
    look: Look = True,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Start a suspended job again, and wait until a rank runs in each worker.

    For example:

    - `mpijob-elastic resume train`

    - `kubectl mpijob-elastic resume mpijob/train --timeout 30m -n ml`: wait for at most 30 minutes

    Exit codes: 0 done; 1 refused, no such job, or no right; 2 wrong usage; 3 finished differently
    (something else suspends the job, or the job has ended); 4 still going at the timeout, or no
    answer from the API server; 130 Ctrl-C.
    """
    from mpijob_elastic.cli.jobs.change import change  # noqa: PLC0415 - --help need not load the client
    from mpijob_elastic.cli.jobs.changes import resuming  # noqa: PLC0415

    where = Where(kubeconfig=kubeconfig, context=context, namespace=namespace)
    raise typer.Exit(
        asyncio.run(change(where, job, resuming, _patience(timeout, wait=wait, look=look)))
    )


def delete(
    job: Job,
    *,
    yes: Yes = False,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Delete a job with its pods. If the job trains, the command asks for confirmation.

    For example:

    - `mpijob-elastic delete train`

    - `kubectl mpijob-elastic delete mpijob/train --yes -n ml`: without confirmation, for scripts

    Without a terminal, a job that trains is deleted only with --yes.

    Exit codes: 0 done; 1 refused, not confirmed, no such job, or no right; 2 wrong usage; 4 no
    answer from the API server; 130 Ctrl-C.
    """
    from mpijob_elastic.cli.jobs.deletion import delete  # noqa: PLC0415 - --help need not load the client

    where = Where(kubeconfig=kubeconfig, context=context, namespace=namespace)
    raise typer.Exit(asyncio.run(delete(where, job, yes=yes)))


def prune(
    *,
    yes: Yes = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the jobs; delete nothing.")
    ] = False,
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Delete the finished jobs. The command lists them, and asks for confirmation.

    For example:

    - `mpijob-elastic prune`: delete the finished jobs of the context's namespace

    - `kubectl mpijob-elastic prune -A --dry-run`: list the finished jobs of all namespaces

    Without a terminal, jobs are deleted only with --yes.

    Exit codes: 0 done; 1 refused, not confirmed, or no right; 2 wrong usage; 3 finished partly (a
    job has changed meanwhile, so it stays); 4 no answer from the API server; 130 Ctrl-C.
    """
    from mpijob_elastic.cli.jobs.deletion import prune  # noqa: PLC0415 - --help need not load the client

    where = Where(
        kubeconfig=kubeconfig, context=context, namespace=namespace, all_namespaces=all_namespaces
    )
    raise typer.Exit(asyncio.run(prune(where, yes=yes, dry_run=dry_run)))


def _patience(timeout: str, *, wait: bool, look: bool = False) -> Patience:
    from mpijob_elastic.cli.jobs.change import Patience  # noqa: PLC0415 - --help need not load the client

    return Patience(wait=wait, seconds=float(timeout), look=look)


def _scaled(
    where: Where, job: str, asked: Asked, patience: Patience, script: str, env: Pairs
) -> Exit:
    """Change the size, and run the script if there is one."""
    from mpijob_elastic.cli.jobs import scripted  # noqa: PLC0415 - --help need not load the client

    variables = pairs(env, "=", "--env")
    if variables and not script:
        raise typer.BadParameter("--env is for --script, which is missing", param_hint="--env")
    return asyncio.run(
        scripted.scale(where, job, asked, patience, scripted.Script(text=script, env=variables))
    )


def _refuse_two(count: int | None, to: int | None, *names: list[str] | None) -> None:
    if count is not None and to is not None:
        raise typer.BadParameter("give --count or --to, not both", param_hint="--to")
    if to is not None and any(names):
        raise typer.BadParameter("give the new size or the workers, not both", param_hint="--to")


def _parsed(
    parse: Callable[[str], Found], given: list[str] | None, option: str
) -> tuple[Found, ...]:
    """Return each text parsed. Raises typer.BadParameter for what `parse` refuses."""
    try:
        return tuple(parse(text) for text in given or ())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
