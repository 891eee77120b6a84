"""The former place of `Counterfactual`; it stays for one release. Use `evenrank.mitigate.counterfactuals`."""

from evenrank.mitigate.counterfactuals import Counterfactual, Shift

__all__ = ["Counterfactual", "Shift"]
