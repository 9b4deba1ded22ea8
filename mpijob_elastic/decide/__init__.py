"""The whole policy: from one view of a job and the time to the writes and looks that are due.

The policy does no IO, reads no clock and writes no log. `decide` is called again after every write
and every change, and gives the next safe step from the view alone, so a crash between any two
writes leaves a state that the next call completes. An empty plan means that all is well.

- `derive` finds the state of the job and of each worker once; all else reads that state.
- `plan` puts the steps together, in their order; each step stands in a module of its own.
- `plan_words` says a plan in words.

The complexity comes from three sides that do not wait for one another:
- Horovod's driver, which reads the host list once a second and blacklists a host whose rank dies
  (see host_list);
- the operator, which creates missing pods and never deletes or updates a pod (host_list, drain,
  launcher_start);
- the user, who changes the size at any time, and may change it back.
"""

from mpijob_elastic.decide.derive import derive
from mpijob_elastic.decide.plan import decide, plan
from mpijob_elastic.decide.plan_words import in_words

__all__ = ["decide", "derive", "in_words", "plan"]
