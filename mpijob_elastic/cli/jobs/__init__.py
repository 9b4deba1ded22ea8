"""Jobs on the command line, read and changed with the user's own rights.

`snapshot` reads them once and `live` follows them: the controller's own facts, view and decision.
`report` puts them into words, and `show` prints them. `change` writes what `changes` decides, and
`waiting` tells how far that has come. `logs`, `pods` and `top` reach into the pods.
"""
