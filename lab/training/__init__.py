"""The example that trains (examples/elastic-pytorch.yaml) on a cluster with a real node, and how its training went."""
