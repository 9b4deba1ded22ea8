"""Convert jobs of other kinds to elastic MPIJobs v1; pure, from text to text.

Each field without a counterpart is reported, on standard error and as a comment.
"""
