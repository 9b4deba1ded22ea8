"""Run commands beside one another, and show their output one after the other, each from its first line.

python scripts/beside.py NAME=COMMAND [NAME=COMMAND...]

The output of the first command is shown as it comes, the output of the second as soon as the first has ended, and so
on. The closing lines repeat what pytest said last in each. The exit code is 1 if a command failed or passed no test.
"""

import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

POLL = 0.2  # seconds
PASSED = re.compile(r"^=*\s*(.*\b\d+ passed\b.*?)\s*=*$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Lane:
    """A command that runs, and the file that takes its output."""

    name: str
    process: subprocess.Popen[bytes]
    output: Path

    @classmethod
    def start(cls, name: str, command: str, *, directory: Path) -> "Lane":
        """Start a command of the shell in a process group of its own, so that all of it can be interrupted."""
        output = directory / name
        with output.open("wb") as file:
            process = subprocess.Popen(  # noqa: S602 - the commands are the Makefile's
                command, shell=True, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, process_group=0
            )
        return cls(name=name, process=process, output=output)

    def show(self) -> None:
        """Copy the output to the terminal until the command has ended."""
        with self.output.open("rb") as file:
            ended = False
            while not ended:
                ended = self.process.poll() is not None  # first, so that nothing is missed
                sys.stdout.buffer.write(file.read())
                sys.stdout.flush()
                time.sleep(0 if ended else POLL)

    def result(self) -> tuple[bool, str]:
        """Tell whether the command succeeded, and what its tests gave."""
        found = "; ".join(PASSED.findall(self.output.read_text(errors="replace")))
        if self.process.returncode:
            return False, f"FAILED with exit code {self.process.returncode}; {found or 'no test passed'}"
        return bool(found), found or "FAILED: no test was run"

    def interrupt(self) -> None:
        """End the command as Ctrl-C does, and wait for it: it may have a control plane to stop."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
        self.process.wait()


def main(arguments: list[str]) -> int:
    """Run all, and return the exit code."""
    started = time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="mpijob-elastic-tests-") as directory:
        pairs = [argument.partition("=") for argument in arguments]
        lanes = [Lane.start(name, command, directory=Path(directory)) for name, _, command in pairs]
        try:
            for lane in lanes:
                print(f"\n=== {lane.name} ===", flush=True)
                lane.show()
        except KeyboardInterrupt:
            return 130
        finally:
            for lane in lanes:
                lane.interrupt()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        minutes, cpu = (time.monotonic() - started) / 60, (used.ru_utime + used.ru_stime) / 60
        print(f"\n=== {minutes:.1f} minutes, {cpu:.1f} minutes of CPU")
        for lane in lanes:
            print(f"=== {lane.name}: {lane.result()[1]}")
        return 0 if all(lane.result()[0] for lane in lanes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
