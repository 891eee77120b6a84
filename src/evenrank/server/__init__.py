"""The web server and the monitor (extra `serve`).

================ ====================================================================
app.py           `make_app`: the JSON interface, `/v1/…`, and the pages put together; `make_server`: who may
                 connect, and for how long
models.py        what the interface takes and gives
evaluating.py    one result list, measured and coloured, in plain words
searching.py     the collection that is served: rankers side by side, re-ranked live
site.py          the pages for people, and the interface described
rendering.py     templates and styles; the page of a monitor
uploads.py       audits of uploaded runs, each in a process of its own
limits.py        how large, how many, how long; what browsers may do with the pages
monitor.py       a set of queries, asked again and again, and the file that keeps the answers
sequences.py     `change`: has the mean of a series changed? Confidence sequences
================ ====================================================================
"""
