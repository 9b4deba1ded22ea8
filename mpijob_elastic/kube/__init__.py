"""A Kubernetes client for any controller; nothing here knows MPIJobs."""
