"""Measures of bias in ranked lists: one small file for each family; CONTRIBUTING says how to add one."""

# Importing a family registers its measures by name.
import evenrank.measures.dictionary
import evenrank.measures.exposure
import evenrank.measures.gsr.measure
import evenrank.measures.neutrality
import evenrank.measures.parity
import evenrank.measures.rank_bias
import evenrank.measures.representation
import evenrank.measures.skew
import evenrank.measures.variants  # noqa: F401
