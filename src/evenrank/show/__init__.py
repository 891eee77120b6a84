"""What people see: numbers, tables, charts and the report.

============= =======================================================================
numbers.py    one way to print a value, an interval, a p
grid.py       rows of cells as text, CSV, LaTeX, Markdown; how results print themselves
charts/       one file for each question: the chart, its figures, its section; one theme
figure.py     a chart with its words and numbers; a section of the report
tables.py     sections without charts: the cards of the verdict, tables, text
report.py     the sections in their order, `render`: an audit to one HTML file; charts as files
notebook.py   results as pieces of HTML for a notebook's cell
templates/    the page, its style and its script
============= =======================================================================

`numbers` and `grid` import nothing of ours but errors, so that everything may print through them.
"""
