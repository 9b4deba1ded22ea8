"""What the webhook answers: pure functions from objects to patches, warnings and verdicts."""
