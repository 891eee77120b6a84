"""Mitigations: a run or training data in, the same out, less biased."""
