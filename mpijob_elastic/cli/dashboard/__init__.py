"""`dashboard`: a page on this machine that shows what `get` and `explain` compute, live.

`guard` decides who may ask; `opening` hands the page its token; `streams` says what is sent; `server` runs it all.
The files in `page/` are sent as they are.
"""
