#!/bin/sh
# What Elastic Horovod 0.28.1 makes of the list that a discovery script prints. Horovod's own driver
# (runner/elastic/driver.py) and the part of a rank that hears of changes (common/elastic.py) run here;
# they are pure Python, so nothing is compiled and no rank trains.
#
# One would guess                                 Seen
# 1 The driver tells rank 0 of a host until the   It tells rank 0 once. If rank 0 has not yet entered
#   host has a rank.                              hvd.elastic.run, the driver tells nobody, then and later.
# 2 Rank 0 keeps a message until its next commit. It drops what comes before hvd.init() of the new ring
#                                                 has ended: on_reset makes a new queue.
# 3 `NAME:0` is refused, or is a host as any.     It gives no slot and starts no rank. It is an added host
#                                                 to the driver, which speaks to rank 0 again if its ranks
#                                                 differ from the list.
# 4 Each change of the list resets the ring.      A change that leaves the ranks as they are is not told.
# 5 Any message makes old ranks synchronise with  If a line `NAME:0` only goes away, that is a removal:
#   new ranks.                                    the ranks skip the synchronisation (skip_sync).
# 6 Messages are told apart by their content.     By whole seconds: a second message of the same second
#                                                 does not count.
#
# Needs python3 (3.9 or newer) with pip and venv, and PyPI. Prints what it saw; fails if that has changed.
set -eu
version=0.28.1
digest=92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM

echo "horovod==$version --hash=sha256:$digest" > "$folder/source.txt"
printf '%s\n' psutil==5.9.8 cloudpickle==3.1.1 PyYAML==6.0.2 packaging==24.2 > "$folder/libraries.txt"
python3 -m venv "$folder/venv"
python="$folder/venv/bin/python"
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --requirement "$folder/libraries.txt"
# The source is downloaded as a file: pip would build it, which needs a compiler and PyTorch.
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary=horovod --require-hashes \
  --requirement "$folder/source.txt" --dest "$folder"
tar -xzf "$folder/horovod-$version.tar.gz" -C "$folder"

cat > "$folder/watch.py" <<'PYTHON'
import sys
import threading
import time

from horovod.common import elastic
from horovod.runner.elastic.discovery import HostDiscoveryScript
from horovod.runner.elastic.driver import ElasticDriver
from horovod.runner.elastic.worker import HostUpdateResult

READ = 2.5  # seconds; the driver runs the script once a second
AT_MOST = 30.0  # seconds to wait for what must come
START = 4.0  # seconds that a new rank needs until its hvd.init() ends

printed = [""]
ended = threading.Event()
told, started, synced, rings = [], [], [], []
forms = threading.Event()
failures = []


def write(*lines):
    printed[0] = "".join(f"{line}\n" for line in lines)


class Script(HostDiscoveryScript):
    """The discovery script, without a process; Horovod reads the lines."""

    def _execute_discovery_script(self):
        return printed[0]


class Server:
    """Horovod's rendezvous server, of which the driver wants this much."""

    def init(self, assignments):
        pass

    def stop(self):
        pass


class Client:
    """The connection to rank 0, without a network."""

    def notify_hosts_updated(self, timestamp, change):
        told.append(change)
        elastic.notification_manager.handle_hosts_updated(timestamp, change)


class Rank0(elastic.ObjectState):
    def sync(self):
        synced.append(len(rings))
        super().sync()


def process(slot, events):
    """A rank, as the driver starts one."""
    started.append(slot.hostname)
    ended.wait()
    return 0, time.time()


def reset():
    """What a rank does between two rings: all ranks say ready, the driver starts newcomers, hvd.init() waits."""
    before = set(driver.host_assignments)
    driver.resume()
    forms.set()
    time.sleep(START if set(driver.host_assignments) - before else 0.2)
    forms.clear()
    rings.append(sorted(driver.host_assignments))


def train(state):
    while not ended.is_set():
        time.sleep(0.1)
        state.commit()


def await_ring(number):
    deadline = time.monotonic() + AT_MOST
    while len(rings) < number and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1)  # rank 0 commits again


def ranks():
    return sorted(driver.host_assignments)


def see(what, saw, expected):
    print(f"{what}: {saw}", flush=True)
    if saw != expected:
        failures.append(f"{what}: expected {expected}")


def words(since):
    return [change.name for change in told[since:]]


print("Horovod 0.28.1, its driver and the state of rank 0", flush=True)
write("w-0:1")
driver = ElasticDriver(Server(), Script("hosts.sh", 1), 1, 8, timeout=60)
driver.start(1, process)

write("w-0:1", "w-1:1")
time.sleep(READ)
driver._worker_clients[("w-0", 0)] = Client()  # hvd.elastic.run registers it (register_worker_server)
state = Rank0(bcast_object=lambda it, *_: it, get_rank=lambda: 0)
threading.Thread(target=elastic.run_fn(train, reset), args=(state,), daemon=True).start()
time.sleep(READ)
see("1 told of w-1, listed before rank 0 entered hvd.elastic.run", words(0), [])
see("1 ranks", ranks(), ["w-0"])

write("w-0:1", "w-1:1", "w-0.r01:0")
assert forms.wait(AT_MOST)
see("3 told when the line w-0.r01:0 came", words(0), ["added"])
heard = len(told)
write("w-0:1", "w-1:1", "w-2:1", "w-0.r01:0")
time.sleep(READ)
assert forms.is_set(), "this machine is too slow"
see("2 told of w-2 while ranks formed a ring", words(heard), ["added"])
await_ring(1)
time.sleep(READ)
see("3 ranks, and none started in w-0.r01", [ranks(), started], [["w-0", "w-1"], ["w-0", "w-1"]])
see("2 rings after rank 0 has committed again", rings, [["w-0", "w-1"]])

heard = len(told)
write("w-0:1", "w-1:1", "w-2:1", "w-0.r02:0")
await_ring(2)
see("3 told when the line got another name", words(heard), ["mixed"])
see("3 ranks", ranks(), ["w-0", "w-1", "w-2"])

heard = len(told)
write("w-0:1", "w-1:1", "w-2:1", "w-0.r03:0")
time.sleep(READ)
see("4 told when the line changed and all hosts had ranks", words(heard), [])
see("4 rings", len(rings), 2)

write("w-0:1", "w-1:1", "w-2:1", "w-3:1", "w-0.r03:0")
assert forms.wait(AT_MOST)
write("w-0:1", "w-1:1", "w-2:1", "w-3:1", "w-4:1", "w-0.r03:0")
await_ring(3)
time.sleep(READ)
see("2 ranks, w-4 was added while they formed a ring", ranks(), ["w-0", "w-1", "w-2", "w-3"])
heard = len(told)
write("w-0:1", "w-1:1", "w-2:1", "w-3:1", "w-4:1")
await_ring(4)
see("5 told when the line went away", words(heard), ["removed"])
see("5 ranks", ranks(), ["w-0", "w-1", "w-2", "w-3", "w-4"])
see("5 rings after which rank 0 synchronised; not 4, in which w-4 came", synced, [0, 1, 2, 3])

ended.set()
one = elastic.ObjectState(bcast_object=lambda it, *_: it, get_rank=lambda: 0)


def interrupts(at):
    one.on_hosts_updated(at, HostUpdateResult.added)
    try:
        one.check_host_updates()
    except elastic.HostsUpdatedInterrupt:
        return True
    return False


see("6 does a message of second 100, 100, 101 interrupt", [interrupts(at) for at in (100, 100, 101)], [True, False, True])
driver._shutdown.set()
if failures:
    sys.exit("this has changed:\n" + "\n".join(failures))
PYTHON
PYTHONPATH="$folder/horovod-$version" timeout 120 "$python" -W ignore "$folder/watch.py"
