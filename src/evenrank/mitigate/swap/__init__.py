"""The counterfactual twin of a text: :func:`swap` mirrors it, a :func:`swapper` mirrors many."""

from evenrank.mitigate.swap.mirroring import Swapper, swap, swapper

__all__ = ["Swapper", "swap", "swapper"]
