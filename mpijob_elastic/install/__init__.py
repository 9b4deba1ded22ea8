"""Install and remove: what `kubectl apply -k config/overlays/...` does, through the API and in a safe order.

Every step can be repeated: run an interrupted command again to finish it. Functions that are given a client raise
`errors.KubeError`; `Refused` is one.
"""
