"""Jobs on the command line, read and changed with the user's own rights.

`snapshot` reads jobs once and `live` follows jobs, with the controller's own facts, view and
decision. `report` puts jobs into words, and `show` prints the reports. `write_change` writes
what `size_request` decides, and `waiting` shows the progress. `logs`, `pods` and `top` reach into
the pods.
"""
