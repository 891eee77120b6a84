"""What people see: numbers, tables, charts and the report.

============= =======================================================================
numbers.py    one way to print a value, an interval, a p
grid.py       rows of cells as text, CSV, LaTeX, Markdown
charts/       one file for each question: the chart, its figures, its section; one theme
figure.py     a chart with its words and numbers; a section of the report
tables.py     sections without charts: the cards of the verdict, tables, text
report.py     the sections in their order, and `render`: an audit to one HTML file
displayed.py  what results have in common: printing, pandas, notebooks
notebook.py   results as pieces of HTML for a notebook's cell
exporting.py  charts as SVG, PNG, PDF, and their numbers as CSV
templates/    the page, its style and its script
============= =======================================================================

`numbers` and `grid` import nothing of ours, so that everything may print through them.
"""
