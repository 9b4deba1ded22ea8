"""The webhook's answers: which rules of `mpijob_elastic.admission` answer which request; pure.

`handlers` has a function for each kind of request, and `validate` puts the refusals of an MPIJob
together. Both know the list of capabilities.
"""
