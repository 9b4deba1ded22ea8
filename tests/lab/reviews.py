"""What the webhook was asked, and a pod about which it is not."""

from lab.replicas import Webhook
from tests.lab.job import Object


def reviews(webhook: Webhook) -> float:
    """Return the number of answered reviews, of all kinds and outcomes."""
    lines = [line for line in webhook.metrics().splitlines() if not line.startswith("#")]
    counts = [line for line in lines if line.startswith("mpijob_elastic_webhook_reviews_total")]
    return sum(float(line.rpartition(" ")[2]) for line in counts)


def plain_pod(number: int) -> Object:
    spec = {"containers": [{"name": "main", "image": "nginx"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"web-{number}"}, "spec": spec}
