"""What the outside sees of us: metrics and logs."""
