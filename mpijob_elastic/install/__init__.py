"""Install and remove: `kubectl apply -k config/overlays/...`, through the API and in a safe order.

Every step can be repeated: run an interrupted command again to finish it. Functions that are given
a client raise `errors.KubeError`; `Refused` is one.
"""

from mpijob_elastic.kube.errors import KubeError

# Attempts at a change that somebody else may interfere with.
ATTEMPTS = 5


class Refused(KubeError):
    """Refuses a request, in words for the user.

    They say what was found, where, why that prevents the request, what is allowed, and what to do
    next.
    """


class NotInTime(Refused):
    """The cluster was still at work when the timeout had passed."""
