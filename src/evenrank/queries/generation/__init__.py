"""Queries out of documents.

================ ==============================================================================
generating.py    `generate`: any of the writers over a collection, part by part, to a table or a file
language.py      a causal or a sequence-to-sequence model of transformers as writer
extractive.py    question words before phrases of the document, where there is no model
filtering.py     `filter_generated`: what is too short, said twice, or does not find its document goes
closeness.py     `closeness`: generated queries beside real ones
tuning.py        `tune_generator`: a model learns from pairs of document and query
================ ==============================================================================
"""
