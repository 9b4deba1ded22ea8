"""A Kubernetes client for any controller; nothing here knows MPIJobs.

`client` connects, with an `access` that `in_cluster` makes in a pod, and `kubeconfig` elsewhere.
Each method of `reader` and `writer` sends one request, except for lists, which come page by page.
`exec` runs a command in a pod. `watch` keeps a `store` up to date by a list and the stream after
it, and `queue` holds the keys of changed objects. `lease` elects the process that writes. `meta`
refuses objects that would take long to read. `kubectl_yaml` reads and writes YAML as kubectl does.
"""
