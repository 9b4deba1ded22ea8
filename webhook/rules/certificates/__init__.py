"""The certificates of the webhook as values: how they are issued, judged and read."""
