"""The campaign: long searches for what breaks the product, apart from `make test`.

`python -m tests.campaign [PART ...] [--seed N] [--minutes M]` runs parts one after the other, all
of them without a name, and prints a row of a Markdown table for each. The same seed repeats the
same run. A part is a module with `run(options) -> Outcome`, and a line in `PARTS` of `__main__`.
"""
