"""The web server and the monitor (extra `serve`).

================ ====================================================================
app.py           `make_app`: all routes put together
api.py           the JSON interface, `/v1/…`
models.py        what the interface takes and gives
evaluating.py    one result list, measured and coloured
colouring.py     where the words of each group stand in a text
wording.py       what the numbers of one list say, in plain words
searching.py     the collection that is served: rankers side by side, re-ranked live
site.py          the pages for people
rendering.py     templates and styles
reference.py     the interface described as a page
uploads.py       audits of uploaded runs, each in a process of its own (audit_worker.py)
limits.py        how large, how many, how long; what browsers may do with the pages
monitor.py       a set of queries, asked again and again
store.py         its file: SQLite
trend.py         its page
================ ====================================================================
"""
