"""Jobs that really train: docs/examples/elastic-pytorch/job.yaml on a lab with a real node, resized while it trains."""
