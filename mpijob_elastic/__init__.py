"""Makes `kubectl edit mpijob` elastic beside an unmodified mpi-operator v0.2.3."""
