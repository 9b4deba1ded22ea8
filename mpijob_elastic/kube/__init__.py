"""A Kubernetes client for any controller; nothing here knows MPIJobs.

`client` connects; `reader` and `writer` send one request a method, but for lists, which come page
by page, and `exec` runs a command in a pod. `watch` keeps a `store` true by a list and the stream
after it, and `queue` holds the keys of what changed. `lease` elects who writes. `meta` refuses
objects that would take long to read.
"""
