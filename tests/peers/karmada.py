"""`karmadactl interpret`, which runs the scripts of docs/examples/karmada in Karmada's interpreter."""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "karmada"
Objects = Mapping[str, Any] | Sequence[Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """The program, and a directory for what it reads."""

    program: Path
    directory: Path

    def run(self, *arguments: str) -> str:
        """Return what it prints.

        It ends well even if a script fails, so its errors must be empty, too.
        """
        command = [
            str(self.program),
            "interpret",
            "-f",
            str(EXAMPLES / "interpreter.yaml"),
            *arguments,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
        return done.stdout

    def answers(self, operation: str, *arguments: str, **files: Objects) -> list[Any]:
        """Return the answers of a script; each file is an option, such as `observed` for --observed-file."""
        for name, content in files.items():
            documents = content if isinstance(content, Sequence) else [content]
            (self.directory / name).write_text(yaml.safe_dump_all(documents))
        options = [f"--{name}-file={self.directory / name}" for name in files]
        return list(yaml.safe_load_all(self.run(f"--operation={operation}", *options, *arguments)))
