"""The kubelet's half of `kubectl exec` for pretended pods."""
