"""MB: representation bias as a measure of a run, beside all others.

A. Lipani, F. Piroi and E. Yilmaz, Towards More Accountable Search Engines: Online Evaluation of
Representation Bias, 2021; see `representation.py`.
"""

from __future__ import annotations

from fractions import Fraction

from evenrank.measures.base import register
from evenrank.measures.groups import AgainstRest, Shares
from evenrank.measures.lists import Ints
from evenrank.measures.representation import representation_bias


class _MB(AgainstRest):
    """Mean representation bias: the share of the top n that show a group, minus the share that should.

    The value of a query is β@n, in [−1, 1], computed exactly: positive toward the group, negative against
    it, 0 where it is shown as often as n results allow. The mean over queries is MB, the mean of absolute
    values (`abs`) MAB and the standard deviation (`spread`) SB. A list of fewer than n documents is divided
    by its length. With two groups the first is meant unless `group` names one.

    Lipani, Piroi and Yilmaz 2021, Definition 2.4.
    """

    __name__ = NAME = "MB"
    PRETTY_NAME = "Mean representation bias"
    SHORT_DESC = "Share of the top n that show a group, minus the share that should."
    MEANING = "The share of the top {k} that shows a group, minus the share that should."
    ORDERED = False
    SIGNED = True
    UNDEFINED = "no target for the group"

    def per_list(self, shown: Ints, target: Shares | None, groups: tuple[str, ...]) -> float:
        column, n = self.group(groups), self.cut(len(shown))
        share = Fraction(int(shown[:, column].sum()), len(shown)) if target is None else target[column]
        if share is None:
            return float("nan")
        return float(representation_bias(int(shown[:n, column].sum()), n, share))


MB = _MB()
register(MB)
