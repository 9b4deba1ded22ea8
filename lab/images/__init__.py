"""Container images made on this machine: no registry, no Docker, no container engine.

    build.ensure(name) -> a docker-archive, for `ctr -n k8s.io images import`

An image is an artifact made from others (a root with Debian packages, compiled Horovod), each kept
in the cache under a digest of what it was made from: whatever ends a build, the next one goes on
after the last artifact.
"""
