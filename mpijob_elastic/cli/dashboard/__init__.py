"""`dashboard`: a page on this machine that shows what `get` and `explain` compute, live, and changes a job on request.

`guard` decides who may ask; `streams` says what is sent; `changes` makes what a button asks for;
`server` runs it all. The files in `page/` are sent as they are.
"""
