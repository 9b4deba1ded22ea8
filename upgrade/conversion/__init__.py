"""Jobs of other kinds made elastic MPIJobs v1; pure, from text to text.

Nothing is dropped in silence: each field without a counterpart is a note, on standard error and as a comment.
"""
