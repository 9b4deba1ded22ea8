"""Ranks start in new hosts and end in those that left, by the job's own kubexec.sh."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.spot.ranks import Ranks, at_hand
from lab.operator import KUBECTL_DIRECTORY

KUBEXEC = f'#!/bin/sh\nPOD_NAME=$1\nshift\n{KUBECTL_DIRECTORY}/kubectl exec ${{POD_NAME}} -- /bin/sh -c "$*"'
# Does what it is asked to on this machine, and says in which pod; there is none called lost.
KUBECTL = """\
#!/bin/sh
[ "$3" = lost ] && exit 1
touch "$(dirname "$0")/$3.started"
shift 4
"$@"
touch "$(dirname "$0")/ended"
"""


@pytest.fixture
def kubectl(tmp_path: Path) -> Path:
    program = tmp_path / "kubectl"
    program.write_text(KUBECTL)
    program.chmod(0o755)
    return program


@pytest.fixture
def ranks(kubectl: Path) -> Iterator[Ranks]:
    made = Ranks(kubectl=kubectl, rights=Path("kubeconfig"))
    yield made
    made.close()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_input_is_handed_on(kubectl: Path) -> None:
    assert at_hand(KUBEXEC, kubectl).splitlines()[-1].startswith(f"exec '{kubectl}' exec --stdin ${{POD_NAME}} -- ")


def test_ranks_follow_the_ring(ranks: Ranks, tmp_path: Path) -> None:
    assert ranks.follow(["a", "b"], kubexec=KUBEXEC)
    until(lambda: (tmp_path / "a.started").exists() and (tmp_path / "b.started").exists())
    assert not ranks.follow(["b", "a"], kubexec=KUBEXEC)
    assert ranks.lost() == set()
    assert ranks.follow(["a"], kubexec=KUBEXEC)
    until((tmp_path / "ended").exists)
    assert ranks.lost() == set()


def test_one_that_cannot_be_reached_is_lost(ranks: Ranks) -> None:
    ranks.follow(["a", "lost"], kubexec=KUBEXEC)
    until(lambda: ranks.lost() == {"lost"})
    ranks.follow(["a"], kubexec=KUBEXEC)
    assert ranks.lost() == set()
