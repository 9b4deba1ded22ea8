"""Rotations: the webhook's certificates and CAs are replaced, again and again, while the API server calls it."""

from tests.campaign.part import Options, Outcome
from tests.campaign.properties import repeated

# Each sees 5 certificates and 3 CAs at least, so together there are 100 and 40 new ones.
ROUNDS = 20


def run(options: Options) -> Outcome:
    """Repeat the lab's test of it."""
    test = ("tests/lab/test_webhook_certificates.py", "-k", "rotations_under_load")
    return repeated(options, ROUNDS, *test, numbers="5 certificates and 3 CAs a run")
