"""Jobs that really train: examples/elastic-pytorch.yaml on a lab with a real node, resized while it trains."""
