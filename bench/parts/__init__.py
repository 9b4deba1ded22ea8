"""Parts of the benchmark: each runs in a lab of its own and gives figures."""
