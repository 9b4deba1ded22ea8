"""Give workers a grace period that fits their ranks, and a main process that ends with them; pure.

[operator] The main process of a worker is `sleep`, which ignores SIGTERM as process 1, so a deleted
pod holds its GPUs for the whole period, whenever its ranks leave. Nobody can end that from outside:
a kubelet that stops a container does not heed a second deletion
(https://github.com/kubernetes/kubernetes/issues/83916).
"""

import math
import signal

from mpijob_elastic import names
from mpijob_elastic.admission import json_patch
from mpijob_elastic.admission.json_patch import Patch
from mpijob_elastic.admission.mutate import AdmittedPod, role_of
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.mpijob import Container

# The script runs in any POSIX shell; kubexec.sh needs one, too. It blocks without a child process,
# because a probe would take a child for a rank: nothing ever comes from an unused terminal. After
# SIGTERM it waits until it has seen twice that no process is left but shells (probes), the dead,
# and what has a terminal (somebody's shell), and says so to the controller (observe/worker_ends). A
# rank that leaves has heard of the list, and so has its driver. If no rank was seen, a driver with
# the old list may still start a rank, so the script lets 5 s pass. If the controller knows that the
# worker has drained, the controller writes the last words itself (act/worker_scripts), and the wait
# ends. The script cannot tell a deletion from a reboot or a liveness probe, after which the pod
# must have failed, to be replaced.
ENDED = 128 + signal.SIGTERM
MAIN = f"""\
{names.MAIN_BEGINS}
read -r _ < /dev/ptmx
[ "$going" ] || exec sleep 365d
ranks() {{
  for stat in /proc/[0-9]*/stat; do
    read -r line < "$stat" || continue
    case $line in "1 "* | *") Z "* | *" (sh) "*) continue ;; esac
    set -- ${{line##*) }}
    [ "$5" = 0 ] && return 0
  done 2> /dev/null
  return 1
}}
said="{names.NO_RANK_SEEN}" empty=0
until [ $empty = 25 ]; do
  empty=$((empty + 1))
  if ranks; then
    said="{names.RANKS_LEFT}" empty=0
  elif [ $empty -ge 2 ]; then
    read -r told 2> /dev/null < /dev/termination-log
    [ "$told" = "{names.RANKS_LEFT}" ] && said=$told
    [ "$said" = "{names.RANKS_LEFT}" ] && break
  fi
  sleep 0.2 2> /dev/null || sleep 1
done
echo "$said" > /dev/termination-log
exit {ENDED}
"""


# Command and arguments that we give the main process.
_OURS = (["/bin/sh", "-c"], [MAIN])
# Seconds that the API server sets where a template has no grace period (core/v1 PodSpec).
_DEFAULT = 30


def fitting(pod: AdmittedPod, job: JobFacts | None) -> Patch:
    """Return a patch for a worker of an elastic job that has neither a grace period nor a command.

    Its template must have neither, and a pod does not say whether its template has a grace period:
    the API server has set 30 s before it asks us. A preStop hook needs a period that its author has
    thought of. The workers of a newer operator (`replica-index`) are its own. In a shared process
    namespace, our main process would take the processes of others for ranks. A container beside it
    may ignore SIGTERM, and hold the pod for the whole period: if another webhook has added one
    since we lengthened the period, the period becomes the default again.
    """
    if job is None or not job.acts_elastic or job.own_grace is not None:
        return ()
    if role_of(pod, job) != names.ROLE_WORKER or _has_own_end(pod):
        return ()
    spec = pod.spec
    containers, before = spec.containers or [], spec.init_containers or []
    mains = [index for index, one in enumerate(containers) if _sleeps(one)]
    if len(mains) != 1:
        return ()
    main = f"/spec/containers/{mains[0]}"
    is_alone = len(containers) == 1 and all(one.restart_policy != "Always" for one in before)
    drain = math.ceil(job.policy.drain_timeout)
    seconds = spec.termination_grace_period_seconds
    if (containers[mains[0]].command, containers[mains[0]].args) == _OURS:
        if is_alone or seconds != drain:
            return ()
        return json_patch.adding(at="/spec/terminationGracePeriodSeconds", value=_DEFAULT)
    if is_alone:
        seconds = max(drain, seconds)
    return (
        *json_patch.replacing(at=f"{main}/command", value=_OURS[0]),
        *json_patch.replacing(at=f"{main}/args", value=_OURS[1]),
        *json_patch.adding(at="/spec/terminationGracePeriodSeconds", value=seconds),
    )


def _sleeps(container: Container) -> bool:
    """Tell whether a container runs the operator's main process, or ours in its place."""
    runs = (container.command, container.args)
    return runs in ((names.WORKER_COMMAND, names.WORKER_ARGS), _OURS)


def _has_own_end(pod: AdmittedPod) -> bool:
    """Tell whether another program or the template's author decides how the pod ends."""
    spec = pod.spec
    if spec.host_pid or spec.share_process_namespace:
        return True
    if names.LABEL_REPLICA_INDEX in pod.metadata.labels:
        return True
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    return any(one.lifecycle and one.lifecycle.pre_stop for one in containers)
