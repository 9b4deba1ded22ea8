"""The webhook's answers: pure functions from objects to patches, warnings and verdicts."""
