"""The paper's experiments: ``python -m research.paper``, which ``make reproduce`` runs.

``specs`` holds the paper's tables, ``plan`` lists their jobs, ``run`` yields a row for
each, ``rows`` keeps them in a file, and ``report`` compares them with ``printed.csv``, the
numbers that the paper prints.
"""
