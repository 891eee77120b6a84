"""The papers' studies as scripts: `python -m experiments` lists them."""
