"""The web server and the monitor (extra `serve`).

================ ====================================================================
app.py           `make_app`: all routes put together
api.py           the JSON interface, `/v1/…`, and its description as a page
models.py        what the interface takes and gives
evaluating.py    one result list, measured and coloured
colouring.py     where the words of each group stand in a text
wording.py       what the numbers of one list say, in plain words
searching.py     the collection that is served: rankers side by side, re-ranked live
site.py          the pages for people
rendering.py     templates and styles
uploads.py       audits of uploaded runs, each in a process of its own
limits.py        how large, how many, how long; what browsers may do with the pages
connections.py   who may connect, and for how long without saying anything
monitor.py       a set of queries, asked again and again, and the file that keeps the answers
trend.py         its page
================ ====================================================================
"""
