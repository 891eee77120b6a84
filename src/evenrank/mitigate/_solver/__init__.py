"""The solver of :func:`evenrank.constrain`: the most useful rankings within limits, with proofs."""
