"""The text of elastic.sh, the driver of any MPI program (docs/decisions/0048).

The webhook gives it to a job's ConfigMap; the controller writes it where the webhook was away.
"""

from pathlib import Path

# ASCII, so that its characters are its bytes.
TEXT = (Path(__file__).parent / "elastic.sh").read_text("ascii")
