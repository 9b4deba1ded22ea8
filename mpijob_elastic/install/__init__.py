"""What `kubectl apply -k config/overlays/...` does, through the API and in a safe order, and the way back.

    manifests (rendered from config/) -> overlays put together -> tailored to the request and the API server
        -> applied one by one, server-side; webhook configurations last, so that no webhook is called that is not there

Every step can be repeated: whatever was interrupted is finished by running it again.
"""
