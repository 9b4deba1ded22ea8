"""What a release consists of, in dist/: `make release`, after `make image`.

    wheel.py     mpijob-elastic for pip, and for the other parts
    plugin.py    the kubectl plugin with everything that it needs but Python, an archive a platform
    krew.py      its manifest, by which krew finds them
    archives.py  the chart as `helm package` makes it, and the one way in which archives are written

No file depends on the time, the user or the machine, so two builds have the same checksums (SHA256SUMS).
"""
