"""What any Kubernetes controller needs of its API server; nothing in here knows what an MPIJob is."""
