"""The report: one HTML file with everything that an audit found.

============= =======================================================================
page.py       `render`: an audit to HTML
sections.py   which figures an audit has, section by section
measured_figures.py, further_figures.py   the figures of each section
figures.py    a chart with its words, its numbers and its exports
gauge.py      the lean of a run as a bar
cells.py      values, intervals and marks as the page writes them
exporting.py  charts as SVG, PNG, PDF, and their numbers as CSV
charts/       one function for each chart, from a frame to an Altair chart
templates/    the page, its style and its script
============= =======================================================================
"""
