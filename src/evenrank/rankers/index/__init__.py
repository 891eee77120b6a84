"""The embedded index. `er.index` builds one; :meth:`Index.open` opens it."""

from evenrank.rankers.index.opened import Index, as_index

__all__ = ["Index", "as_index"]
