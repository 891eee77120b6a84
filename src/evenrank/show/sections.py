"""Which figures an audit has, section by section; what there is no data for is left out."""

from __future__ import annotations

from typing import Any

from evenrank.auditing.result import Audit
from evenrank.show import further_figures as further
from evenrank.show import measured_figures as measured
from evenrank.show.figures import Figure

Figures = dict[str, list[Figure]]


def figures(audit: Audit, **more: Any) -> Figures:
    """All figures, by section. `more` are further findings: see :meth:`evenrank.Audit.report`."""
    found: Figures = {
        "values": measured.value_figures(audit),
        "cutoff": measured.cutoff_figures(audit),
        "change": measured.change_figures(audit),
        "words": measured.word_figures(audit),
        "stereotype": measured.stereotype_figures(audit),
        "tradeoff": further.tradeoff_figures(more.get("tradeoff")),
        "rankshift": further.rankshift_figures(more.get("rank_shift")),
        "representation": further.representation_figures(more.get("representation") or audit.representation),
        "psychology": further.psychology_figures(more.get("psychology") or audit.psychology),
        "association": further.association_figures(more.get("association")),
    }
    return {name: each for name, each in found.items() if each}
