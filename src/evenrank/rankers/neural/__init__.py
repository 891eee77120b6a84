"""Neural rankers: word-interaction models, cross- and bi-encoders, a fast head, language models."""
