"""Rotations: the webhook's certificates and CAs are replaced, again and again, while the API server calls it."""

from tests.campaign.part import Options, Outcome
from tests.campaign.properties import repeated

# Each sees 4 certificates and 2 CAs at least, so together there are 120 and 40 new ones.
ROUNDS = 40


def run(options: Options) -> Outcome:
    """Repeat the lab's test of it."""
    test = ("tests/lab/test_webhook_certificates.py", "-k", "rotations_under_load")
    return repeated(options, ROUNDS, *test, numbers="4 certificates and 2 CAs a run")
