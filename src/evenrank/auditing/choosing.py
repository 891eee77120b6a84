"""Which measures the given inputs allow: the set that a careful person would look at first."""

from __future__ import annotations

from ir_measures import AP, RR, nDCG
from ir_measures.measures import Measure

from evenrank.measures.exposure import AWRF
from evenrank.measures.mean_bias import MB
from evenrank.measures.neutrality import NFaiRR
from evenrank.measures.psychology import LIWC
from evenrank.measures.rank_bias import ARaB, RaB
from evenrank.measures.ranked_parity import rKL
from evenrank.measures.skew import NDKL
from evenrank.measures.stereotype import GSR

DEPTH = 10


def default_measures(
    words: tuple[str, ...],
    shown: tuple[str, ...] = (),
    *,
    docs: bool,
    queries: bool,
    qrels: bool,
    targets: bool,
) -> list[Measure]:
    """Effectiveness, then bias, for whatever is there.

    Parameters
    ----------
    words
        Groups of the tally; empty without one.
    shown
        Groups that documents are labelled with; empty without labels.
    docs, queries, qrels, targets
        Whether these were given.
    """
    gendered = {"female", "male"} <= set(words) or not words
    found: list[Measure] = [nDCG @ DEPTH, RR @ DEPTH, AP] if qrels else []
    if len(words) == 2:
        found += [RaB @ DEPTH, ARaB @ DEPTH, ARaB(magnitude="boolean") @ DEPTH]
    elif len(words) > 2:  # every group against the first: no pair is the natural one
        found += [ARaB(of=group, against=words[0]) @ DEPTH for group in words[1:]]
    if len(words) >= 2:
        found.append(NFaiRR @ DEPTH)
    if docs and queries and gendered:
        found.append(GSR if qrels else GSR @ DEPTH)
    if docs and gendered:
        found.append(LIWC @ DEPTH)
    if len(shown) >= 2:
        found += [AWRF @ DEPTH, NDKL @ DEPTH]
        found += [rKL @ DEPTH] if len(shown) == 2 else [rKL(group=group) @ DEPTH for group in shown]
    if shown and targets:
        found += [MB(group=group) @ DEPTH for group in (shown[:1] if len(shown) == 2 else shown)]
    return found
