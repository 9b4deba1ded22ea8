"""Install and remove: what `kubectl apply -k config/overlays/...` does, through the API and in a safe order.

    manifests (rendered from config/) -> overlays combined -> adapted to the request and the API server
        -> applied one by one, server-side; webhook configurations last, so that no missing webhook is called

Every step can be repeated: run an interrupted command again to finish it.
"""
