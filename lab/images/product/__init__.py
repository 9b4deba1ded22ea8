"""The image of mpijob-elastic itself, made without Docker, without a registry and without root.

Three layers, each from locked inputs:

    debian.py    Python and its libraries from Debian (requirements/debian.txt), without shell and package manager
    python.py    the locked wheels (requirements/runtime.txt), installed and compiled by the image's own Python
    image.py     mpijob-elastic, and what a container runs

`sbom.py` lists all of it. The Dockerfile makes the same on another base, for those who build with
Docker.
"""
