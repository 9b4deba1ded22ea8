"""What people and machines are told: `metrics` for Prometheus, `logs`, and text that is safe on a `terminal`."""
