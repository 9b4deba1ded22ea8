"""Jobs on the command line, read and changed with the user's own rights.

`snapshot` reads them once and `live` follows them: the controller's own facts, view and decision. `report` puts them
into words for `get`, `watch` and `explain`. `change` writes for `scale`, `suspension` and `deletion`, and `goals` and
`waiting` tell how far a change has come. `logs`, `attach` and `top` reach into the pods.
"""
