"""Real nodes: containerd, runc and a kubelet each, in namespaces of this machine that end with the lab.

A node lives in a mount, a network, a PID and a cgroup namespace of its own (`namespaces`,
`cgroups`), whose first process sets them up (`first`). So its bridge, its addresses, its mounts and
all its processes are invisible outside, several labs cannot disturb one another, and when a lab
ends, however it ends, the kernel takes them all away. Nothing is changed on the machine but one
group in each cgroup hierarchy, with all of its containers' groups in it, which a process that
outlives the lab by an instant removes (`cgroups`).

Between the nodes is a network namespace (`switch`). Nothing is routed between it and the machine's.
One process has a foot in both (`gateway`): it passes what pods send to the service address on to
the API server, and what the API server sends to kubelets on to the nodes. Another, kube-proxy,
stands there for all other Services (`proxy`). The supervisor ends and starts single nodes when
asked to (`commands`, `rack`).
"""
