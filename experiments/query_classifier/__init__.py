"""Training of the query classifier that comes with the package, and its cross-validation."""
