"""The example that trains (docs/examples/elastic-pytorch) on a cluster with a real node, and how its training went."""
