#!/bin/sh
# horovodrun's options are read by Python's argparse, so shortened options are valid, also `-n` for
# `-np`. Who reads a launcher's command for them must do the same.
#
# A guess: `--min-n` is short for `--min-np`, because `--min-np` and `--min-num-proc` are names of
# one option. Seen with Python 3.11.7: it is refused as ambiguous. (Later versions were not tried, so
# the line is left out there.)
# A guess: an elastic job gives --min-np and --max-np, so `-np` can be left out. Seen: it is
# required.
#
# Horovod 0.28.1, the parser alone: nothing is compiled, and no job starts.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 -m venv "$tmp/venv"
pip="$tmp/venv/bin/pip"
"$pip" install --quiet psutil==5.9.8 PyYAML==6.0.2 cloudpickle==3.1.1 packaging==24.2
"$pip" download --quiet --no-deps --no-binary horovod --dest "$tmp" horovod==0.28.1
tar -C "$tmp" -xzf "$tmp/horovod-0.28.1.tar.gz"
PYTHONPATH="$tmp/horovod-0.28.1" "$tmp/venv/bin/python" - <<'PYTHON'
import contextlib
import io
import sys

from horovod.runner import launch


def read(line):
    """Return (np, min_np, max_np, command), or the last words of the refusal."""
    sys.argv = ["horovodrun", *line.split()]
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            args = launch.parse_args()
    except SystemExit:
        return said.getvalue().strip().rpartition("error: ")[2]
    return args.num_proc, args.min_num_proc, args.max_num_proc, args.command


end = " python train.py"
command = ["python", "train.py"]
ambiguous = "ambiguous option: --min-n could match --min-np, --min-num-proc"
expected = {
    "-np 2": (2, None, None, command),
    "-n 2": (2, None, None, command),
    "-np 2 --min-num 1 --max-num=4": (2, 1, 4, command),
    "-np 2 --min-n 1": ambiguous,
    "--min-np 1 --max-np 4": "the following arguments are required: -np/--num-proc",
    "-np2": "the following arguments are required: -np/--num-proc",
}
if sys.version_info >= (3, 12):
    del expected["-np 2 --min-n 1"]
print("Python", sys.version.split()[0])
wrong = 0
for line, answer in expected.items():
    found = read(line + end)
    print(f"horovodrun {line}: {found}")
    wrong += found != answer
sys.exit(f"{wrong} answers have changed" if wrong else 0)
PYTHON
