"""`dashboard`: serve a live page on this machine that shows and changes jobs.

The page shows what `get` and `explain` compute. `guard` decides which requests are accepted;
`streams` sends the data; `post` makes the change that a button requests; `server` serves all of
it. The files in `page/` are sent as they are.
"""
