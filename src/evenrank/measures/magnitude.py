"""How strongly a group shows in a document; the arithmetic lives with the words, for rankers too."""

from evenrank.text.magnitude import MAGNITUDES, magnitude

__all__ = ["MAGNITUDES", "magnitude"]
