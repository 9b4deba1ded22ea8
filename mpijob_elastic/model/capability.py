"""What an optional capability knows of a job.

The core sees only that it is there; see decide.wishes for what it wants.
"""


class Known:
    """Facts of one capability about one job, immutable and comparable; none where it has nothing to do with it.

    gate: the scheduling gate that new pods of the job get for what its MPIJob asks, "" for none. rations: its workers
    start one by one, as somebody else allows. sized: what its MPIJob asks for needs an elastic job.
    """

    gate: str = ""
    rations: bool = False
    sized: bool = False
