"""What only the command line needs of capabilities: the objects that its commands read for them.

This is the only place that names them. The words for a job come from `decide.shown.Shown`.
"""

from typing import Any

from mpijob_elastic.capabilities.autoscaling import SIZING as AUTOSCALERS
from mpijob_elastic.capabilities.kube_queue import KubeQueue
from mpijob_elastic.capabilities.kueue import Kueue
from mpijob_elastic.decide.shown import ReadingOf, Sizing

# What a command reads once for all jobs of a queue.
READINGS: tuple[ReadingOf, ...] = (KubeQueue.reading, Kueue.reading)
# What a command reads before it sets a size, to learn who else sets it.
SIZINGS: tuple[Sizing[Any], ...] = (AUTOSCALERS,)
