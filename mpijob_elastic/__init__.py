"""Makes `kubectl edit mpijob` elastic beside an unmodified mpi-operator v0.2.3."""

__version__ = "0.4.0"
