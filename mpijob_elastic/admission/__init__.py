"""What is answered at admission, decided purely: patches, reviews, sizes, templates and warnings.

`interface` is what a capability adds to an answer. Nothing here knows a capability, or the server
that answers (`webhook`), whose `rules` put an answer together and reject values of annotations.
"""
