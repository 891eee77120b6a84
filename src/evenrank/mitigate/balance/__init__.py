"""Training sets that treat female and male queries alike.

matching.py      `balance` leaves out queries without a counterpart; `fill` adds generated counterparts
judgments.py     `even_judgments`: pairs of a female and a male query whose documents read alike are added
training_set.py  what all three return: queries and judgments, written to a folder
"""
