"""What a release needs beside the image: `python -m lab.release` puts it into dist/, as `make release` does.

No file depends on the time, the user or the machine, so two builds have the same checksums
(SHA256SUMS). Where the project is published is said by options, for the sources do not know it.
"""
