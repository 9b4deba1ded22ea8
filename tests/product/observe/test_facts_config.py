"""What is kept of a job's ConfigMap and Role: all that we wrote, and little of what anybody else can store."""

import itertools
import tracemalloc
from collections.abc import Callable
from random import Random
from uuid import UUID

import msgspec
import pytest

from mpijob_elastic import names
from mpijob_elastic.model import bounds, elastic_script, history, kubexec
from mpijob_elastic.model.job import hostfile_slots, parse_script, script_fingerprint
from mpijob_elastic.model.memory import Host, Left, Memory, Tries, parse_memory, render_memory
from mpijob_elastic.observe.facts_config import (
    packed,
    packed_size,
    read_config,
    read_role,
)
from tests.builders import NOW

# As long as the label `mpi-job-name` may be, and for 10,000 workers as long as list and hostfile
# fit into 1 MiB.
LONG_NAME, LESS_LONG = "j" * 63, "j" * 30
LARGEST = 2**20 - 2**10
LARGEST_ANNOTATION = 2**18
OURS = script_fingerprint(elastic_script.TEXT)


def garbage(size: int, *, names_of: str = "") -> str:
    """Return text that compression makes little shorter; with `names_of`, a worker of that job a line."""
    random, lines, total = Random(size), [], 0
    for index in itertools.count():
        worker = names.worker(names_of, index) if names_of else ""
        lines.append(f"{worker} {random.getrandbits(256):x}\n")
        total += len(lines[-1])
        if total > size:
            break
    return "".join(lines)[:size]


def config_map(texts: dict[str, str], *, of: str = "train") -> bytes:
    owner = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "name": of,
        "uid": "u",
        "controller": True,
    }
    noted = {key: texts[key] for key in (names.MEMORY, names.HISTORY) if key in texts}
    metadata = {"name": names.config_map(of), "namespace": "n", "uid": "c", "annotations": noted}
    data = {key: text for key, text in texts.items() if key not in noted}
    return msgspec.json.encode({"metadata": {**metadata, "ownerReferences": [owner]}, "data": data})


def role(pods: list[str], *, of: str = "train") -> bytes:
    owner = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "name": of,
        "uid": "u",
        "controller": True,
    }
    rules = [{"resources": ["pods/exec"], "resourceNames": pods}]
    metadata = {
        "name": names.launcher(of),
        "namespace": "n",
        "uid": "r",
        "ownerReferences": [owner],
    }
    return msgspec.json.encode({"metadata": metadata, "rules": rules})


def kept(read: Callable[[], object]) -> int:
    """Return the bytes that stay of what is read."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        found = [read() for _ in range(10)]
        return (tracemalloc.get_traced_memory()[0] - before) // len(found)
    finally:
        tracemalloc.stop()


def ours(of: str, workers: int) -> dict[str, str]:
    """The texts of a job of which each worker is listed, has a second host name, was moved, and is leaving."""
    random, pods = Random(workers), [names.worker(of, index) for index in range(workers)]
    memory = Memory(
        left={
            pod: Left(pod=f"{random.getrandbits(32):08x}", at=NOW, known_at=NOW + random.random())
            for pod in pods
        }
    )
    if workers <= 1_000:
        hosts = {
            pod: Host(pod=f"{random.getrandbits(32):08x}", incarnation=random.randrange(1, 9))
            for pod in pods
        }
        moved = {
            pod: Tries(count=3, at=NOW, uid=str(UUID(int=random.getrandbits(128)))) for pod in pods
        }
        memory = msgspec.structs.replace(memory, hosts=hosts, moved=moved)
    listed = [names.host(pod, random.randrange(1, 9)) for pod in pods]
    return {
        names.KEY_DISCOVER_HOSTS: names.discover_hosts(listed, slots=8),
        names.KEY_HOSTFILE: names.hostfile(pods, slots=8),
        names.MEMORY: render_memory(memory),
        names.KEY_KUBEXEC: "#!/bin/sh\n",
    }


@pytest.mark.parametrize(
    ("of", "workers"), [("j", 1), (LONG_NAME, 100), (LONG_NAME, 1_000), (LESS_LONG, 10_000)]
)
def test_all_that_we_write_is_kept_in_a_hundred_kib_for_each_thousand_workers(
    of: str, workers: int
) -> None:
    texts = ours(of, workers)
    facts = read_config(config_map(texts, of=of))
    assert {
        names.KEY_DISCOVER_HOSTS: facts.script,
        names.KEY_HOSTFILE: facts.hostfile,
        names.MEMORY: facts.memory,
        names.KEY_KUBEXEC: facts.kubexec,
    } == texts
    assert not facts.cut
    assert packed(facts).open() == facts
    raw, most = config_map(texts, of=of), 64 * 2**10 + 100 * 2**10 * workers // 1_000
    assert kept(lambda: packed(read_config(raw))) <= most
    pods = [names.worker(of, index) for index in range(workers)]
    granted = read_role(role(pods, of=of))
    assert granted.exec_names == (*pods,)
    assert packed(granted).open() == granted


@pytest.mark.parametrize("workers", [1, 1_000])
def test_packed_facts_show_nothing_but_their_metadata_before_they_are_opened(workers: int) -> None:
    """A script or a rule that seems absent would be written again."""
    hosts = [names.worker("train", index) for index in range(workers)]
    script = names.discover_hosts(hosts, slots=1)
    facts = read_config(config_map({names.KEY_DISCOVER_HOSTS: script}))
    found: object = packed(facts)
    assert not {"script", "hostfile", "memory"}.intersection(dir(found))
    assert packed(facts).metadata == facts.metadata
    assert packed(facts).open() == facts


HOSTILE = {
    "script": {names.KEY_DISCOVER_HOSTS: garbage(LARGEST)},
    "hostfile": {names.KEY_HOSTFILE: garbage(LARGEST)},
    "kubexec.sh": {names.KEY_KUBEXEC: garbage(LARGEST)},
    "memory": {names.MEMORY: garbage(LARGEST_ANNOTATION)},
    "a memory of nothing": {names.MEMORY: "zlib:" + garbage(LARGEST_ANNOTATION)},
    "just what may be kept, and more": {
        names.KEY_HOSTFILE: garbage(96_000),
        names.KEY_DISCOVER_HOSTS: garbage(LARGEST // 2),
        names.KEY_KUBEXEC: garbage(LARGEST // 4),
    },
    "all": {
        names.MEMORY: garbage(LARGEST_ANNOTATION),
        names.KEY_DISCOVER_HOSTS: garbage(LARGEST // 2),
        names.KEY_HOSTFILE: garbage(LARGEST // 2),
    },
}


@pytest.mark.parametrize("texts", HOSTILE.values(), ids=HOSTILE)
def test_of_texts_that_are_not_ours_64_kib_are_kept(texts: dict[str, str]) -> None:
    raw = config_map(texts)
    assert kept(lambda: packed(read_config(raw))) < bounds.LARGEST_FACTS


def test_what_fits_into_64_kib_is_kept_whoever_wrote_it() -> None:
    facts = read_config(config_map(HOSTILE["just what may be kept, and more"]))
    assert (facts.hostfile, facts.cut) == (garbage(96_000), (names.KEY_DISCOVER_HOSTS,))


def test_names_of_workers_among_the_garbage_buy_no_more_than_the_largest_job_needs() -> None:
    texts = {
        names.MEMORY: garbage(LARGEST_ANNOTATION, names_of="train"),
        names.KEY_DISCOVER_HOSTS: garbage(LARGEST // 2, names_of="train"),
        names.KEY_HOSTFILE: garbage(LARGEST // 2, names_of="train"),
    }
    raw = config_map(texts)
    assert kept(lambda: packed(read_config(raw))) < bounds.LARGEST_CONFIG + 2**12


def test_of_a_role_with_too_many_names_those_of_the_job_are_kept() -> None:
    strangers = garbage(LARGEST).split()[:14_000]
    raw = role([names.worker("train", 0), *strangers])
    assert read_role(raw).exec_names == ("train-worker-0",)
    assert kept(lambda: packed(read_role(raw))) < bounds.LARGEST_FACTS
    few = ["train-worker-0", *strangers[:10]]
    assert read_role(role(few)).exec_names == (*few,)


def test_a_name_of_a_stranger_takes_as_many_bytes_as_its_characters_have() -> None:
    random = Random(1)
    stranger = "".join(chr(random.randrange(0x10000, 0x30000)) for _ in range(60_000))
    assert len(stranger) < bounds.LARGEST_FACTS < packed_size(stranger)
    assert read_role(role(["train-worker-0", stranger])).exec_names == ("train-worker-0",)


def test_beside_a_list_there_is_room_for_kubexec_sh_and_for_what_is_cut() -> None:
    text = garbage(110_000)
    most = bounds.LARGEST_FACTS
    assert most - 2 * bounds.LONGEST_KUBEXEC < packed_size(text) < most
    facts = read_config(config_map({names.KEY_HOSTFILE: text}))
    assert facts.cut == (names.KEY_HOSTFILE,)


@pytest.mark.parametrize(
    ("length", "named"),
    [
        pytest.param(bounds.LONGEST_KUBEXEC, "main", id="as long as it may be"),
        pytest.param(bounds.LONGEST_KUBEXEC + 1, None, id="a character longer"),
        pytest.param(LARGEST, None, id="as long as a ConfigMap may be"),
    ],
)
def test_a_kubexec_sh_that_is_too_long_is_not_taken_for_a_shorter_one(
    length: int, named: str | None
) -> None:
    script = "kubectl exec $1 --container main -- sh\n".ljust(length, "#")
    facts = read_config(config_map({names.KEY_KUBEXEC: script}))
    assert kubexec.container(facts.kubexec) == named


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        pytest.param({names.KEY_ELASTIC: elastic_script.TEXT}, OURS, id="ours"),
        pytest.param({}, "", id="absent"),
        pytest.param({names.KEY_ELASTIC: ""}, script_fingerprint(""), id="empty"),
        pytest.param(
            {names.KEY_ELASTIC: "#" * LARGEST},
            script_fingerprint("#" * LARGEST),
            id="as long as a ConfigMap may be",
        ),
    ],
)
def test_of_the_driver_a_fingerprint_is_kept(texts: dict[str, str], found: str) -> None:
    raw = config_map(texts)
    assert read_config(raw).elastic == found
    assert kept(lambda: packed(read_config(raw))) < 2**13


def test_a_text_that_is_cut_is_none_of_ours() -> None:
    """Each line of a list may be where it is cut."""
    lines = names.discover_hosts(
        [f"train-worker-{index}" for index in range(30)], slots=4
    ).splitlines(keepends=True)
    for count in range(len(lines)):
        script = "".join(lines[:count])
        assert parse_script(bounds.cut(script)) is None
    memory = bounds.cut(render_memory(Memory(script="x" * 12)))
    assert parse_memory(memory) is None
    hostfile = names.hostfile(["train-worker-0"] * 1_000, slots=4)
    assert hostfile_slots(bounds.cut(hostfile)) == 4
    assert bounds.cut(hostfile).splitlines()[-1] not in hostfile.splitlines()


@pytest.mark.parametrize(
    ("size", "known"), [(history.LARGEST, True), (history.LARGEST + 1, False), (0, True)]
)
def test_the_history_is_kept_while_it_may_be_ours(size: int, *, known: bool) -> None:
    told = "x" * size
    facts = read_config(config_map({names.KEY_HOSTFILE: "h", names.HISTORY: told}))
    assert facts.history == (told.encode() if known else b"")
    assert (facts.hostfile, facts.cut) == ("h", ())


def test_a_history_takes_no_more_than_its_bytes_whatever_its_letters_are() -> None:
    told = "x" * (history.LARGEST - 4) + "\N{GRINNING FACE}"
    raw = config_map({names.KEY_HOSTFILE: "h", names.HISTORY: told})
    assert kept(lambda: packed(read_config(raw))) < history.LARGEST + 2**11


def test_beside_a_history_all_that_we_write_is_kept() -> None:
    texts = ours(LONG_NAME, 1_000) | {names.HISTORY: garbage(history.LARGEST - 100)}
    raw = config_map(texts, of=LONG_NAME)
    facts = read_config(raw)
    assert not facts.cut
    assert facts.history == texts[names.HISTORY].encode()
    assert packed(facts).open() == facts
    assert kept(lambda: packed(read_config(raw))) < 164 * 2**10
