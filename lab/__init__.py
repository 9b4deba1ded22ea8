"""A real Kubernetes control plane on loopback ports, for the demo, the tests and the benchmarks.

Nothing here is installed with the product. etcd, kube-apiserver, kube-controller-manager and
kube-scheduler are the real programs; nodes and pods are pretended by kwok, and `kubectl exec` into
them is served by `lab.kubelet`. Start with `python -m lab --help`, or with `lab.cluster.Cluster`
from Python.
"""
