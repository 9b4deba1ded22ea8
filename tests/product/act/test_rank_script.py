"""What counts as a rank in a worker: the script of the controller's probe in a container of its own."""

import shutil
import subprocess
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from mpijob_elastic.act import worker_scripts
from tests.doubles.terminals import on_terminal
from tests.product.act.containers import container, needed

pytestmark = needed


@pytest.mark.parametrize("shell", [shell for shell in ("dash", "bash") if shutil.which(shell)])
def test_a_shell_on_a_terminal_is_no_rank(shell: str) -> None:
    with container() as inside, ExitStack() as stack:

        def answer() -> str:
            words = [*inside, shell, "-c", worker_scripts.SCRIPT]
            return subprocess.run(
                words, check=True, capture_output=True, text=True, start_new_session=True
            ).stdout

        def runs(holds: Callable[[str], bool]) -> None:
            while not holds(
                subprocess.run(
                    [*inside, "ps", "-A"], check=True, capture_output=True, text=True
                ).stdout
            ):
                pass

        assert answer() == "idle\n"
        stack.enter_context(on_terminal(*inside, "bash", "-c", "tail -f /dev/null; exit"))
        runs(lambda shown: "tail" in shown)
        assert answer() == "idle\n"
        rank = subprocess.Popen([*inside, "tail", "-f", "/dev/null"], start_new_session=True)
        stack.callback(rank.wait)
        stack.callback(rank.kill)
        runs(lambda shown: shown.count("tail") == 2)
        assert answer() == "busy\n"
