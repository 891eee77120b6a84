"""The profiles, clause by clause: what a bundle has to state, and what it leaves to others.

Every field names the clause that asks for it and the text, with its date, that the clause stands in. Clauses
whose wording could not be read while this was written say so (`checked`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from evenrank.auditing.result import Audit
from evenrank.auditing.selection import FEWEST_SHARE

Given = Mapping[str, str]


def _always(given: Given, audit: Audit) -> bool:
    return True


def _never(given: Given, audit: Audit) -> bool:
    return False


def _bounded(given: Given, audit: Audit) -> bool:
    return bool(audit.conditions)


@dataclass(frozen=True)
class Text:
    """A published text: the date of the version followed, since when it applies, and how it was read."""

    title: str
    date: str
    applies: str
    read: str


@dataclass(frozen=True)
class Field:
    """One thing that a text asks for.

    Attributes
    ----------
    name, asks, clause, text
        How it is given (`--field NAME=TEXT`), what is asked for, and where which text asks for it.
    among
        The values that it may have; any text where there are none.
    needed
        Whether it is needed, given the other fields and the audit.
    lacks
        For what evenrank computes itself: why it could not be, or None. Such a field cannot be given.
    checked
        Whether the clause was compared with the wording of the text.
    """

    name: str
    asks: str
    clause: str
    text: Text
    among: tuple[str, ...] = ()
    needed: Callable[[Given, Audit], bool] = _always
    lacks: Callable[[Audit], str | None] | None = None
    checked: bool = True

    @property
    def cited(self) -> str:
        """The clause, and that it was not checked where it was not."""
        return self.clause if self.checked else f"{self.clause}; {UNCHECKED}"


@dataclass(frozen=True)
class Elsewhere:
    """What a text asks for and no bundle holds: somebody else has to see to it."""

    asks: str
    clause: str
    text: Text
    checked: bool = True

    @property
    def cited(self) -> str:
        return self.clause if self.checked else f"{self.clause}; {UNCHECKED}"


@dataclass(frozen=True)
class Profile:
    """The fields that texts ask for. `exclusions`: whether small categories may be left out of ratios."""

    name: str
    title: str
    follows: tuple[Text, ...]
    fields: tuple[Field, ...]
    elsewhere: tuple[Elsewhere, ...] = ()
    exclusions: bool = False


UNCHECKED = "number not checked against the text"


def _no_rates(audit: Audit) -> str | None:
    if audit.selection is None:
        return "documents have no groups; give --labels with doc_id and a column for each attribute"
    if audit.selection.idle:
        runs = ", ".join(audit.selection.idle)
        return f"{runs}: no list is longer than {audit.selection.at}, so everybody is selected"
    return None


def _column(*names: str) -> Callable[[Audit], str | None]:
    """Why rates by one of these columns of the labels are lacking."""

    def lacks(audit: Audit) -> str | None:
        if (why := _no_rates(audit)) is not None or audit.selection is None:
            return why
        there = {name.lower().replace(" ", "_") for name in audit.selection.attributes}
        return None if there & {*names} else f"the labels have no column {' or '.join(names)}"

    return lacks


_SEX = ("sex", "gender", "group")
_RACE = ("race", "ethnicity", "race_ethnicity", "race/ethnicity")


def _no_crossing(audit: Audit) -> str | None:
    return _column(*_SEX)(audit) or _column(*_RACE)(audit)


def _no_headline(audit: Audit) -> str | None:
    return "no measure of bias could be computed" if audit.headline is None else None


def _no_bounds(audit: Audit) -> str | None:
    return None if audit.conditions else "no bound was set; give --fail-if"


def _is(name: str, value: str) -> Callable[[Given, Audit], bool]:
    return lambda given, audit: given.get(name) == value


_OURS = Text(
    "evenrank, the auditor's edition (docs/auditors.md)", "2026-11-16", "with every bundle", "written here"
)
_EVERY = "asked for by every bundle; no clause"
_COMMON = (
    Field("auditor", "who made the audit", _EVERY, _OURS),
    Field("date", "day of the audit, YYYY-MM-DD", _EVERY, _OURS),
    Field("purpose", "what the audit is for", _EVERY, _OURS),
    Field(
        "threshold-reason", "why the bounds of --fail-if are where they are", _EVERY, _OURS, needed=_bounded
    ),
    Field("mitigation", "what was done against bias", _EVERY, _OURS, needed=_never),
    Field("languages", "languages of the documents", _EVERY, _OURS, needed=_never),
)


def _common(text: Text, *, checked: bool = True, **clauses: str) -> tuple[Field, ...]:
    """The common fields, those that a text asks for too with its clause."""
    return tuple(
        one
        if (clause := clauses.get(one.name.replace("-", "_"))) is None
        else replace(one, clause=clause, text=text, checked=checked)
        for one in _COMMON
    )


GENERAL = Profile(
    "general",
    "An audit that others can check",
    (_OURS,),
    (*_COMMON, Field("bias", "a measure of bias with its interval", _EVERY, _OURS, lacks=_no_headline)),
)

_COPY = "read in a copy of 2026-09-09 of the city's code"
_LAW = Text(
    "New York City, Local Law 144 of 2021 (Administrative Code §§ 20-870 to 20-874)",
    "2021-12-11",
    "in effect since 2023-01-01, enforced since 2023-07-05",
    _COPY,
)
_RULE = Text(
    "Rules of the City of New York, Title 6, §§ 5-300 to 5-304 (City Record)",
    "2023-04-06",
    "in effect since 2023-05-06",
    _COPY,
)
NYC = Profile(
    "nyc-ll144",
    "Bias audit of an automated employment decision tool (New York City)",
    (_LAW, _RULE),
    (
        *_common(_RULE, auditor="6 RCNY § 5-300, independent auditor", date="6 RCNY § 5-303(a)(1)"),
        Field(
            "independence",
            "why the auditor is independent: no part in the tool, no employment, no financial interest",
            "6 RCNY § 5-300, independent auditor (i)–(iii)",
            _RULE,
        ),
        Field("data-source", "source and explanation of the data", "6 RCNY § 5-303(a)(1)", _RULE),
        Field("data-kind", "historical or test data", "6 RCNY § 5-302", _RULE, among=("historical", "test")),
        Field(
            "test-data-reason",
            "why no historical data were used, and how the test data were generated and obtained",
            "6 RCNY § 5-302(b)",
            _RULE,
            needed=_is("data-kind", "test"),
        ),
        Field(
            "categories",
            "how the categories of the labels follow those of the EEO-1 report",
            "6 RCNY § 5-300, category",
            _RULE,
        ),
        Field(
            "distribution-date",
            "day on which the employer or agency began to use the tool, YYYY-MM-DD",
            "6 RCNY § 5-303(a)(2)",
            _RULE,
        ),
        Field(
            "exclusion-reason",
            f"why categories with less than {FEWEST_SHARE:.0%} of the data take no part in impact ratios; "
            "without it none is left out",
            "6 RCNY § 5-301(d)",
            _RULE,
            needed=_never,
        ),
        Field(
            "sex-rates",
            "selection and scoring rates and impact ratios by sex",
            "6 RCNY § 5-301(b)(1)–(3)(i), (c)(2)–(4)(i)",
            _RULE,
            lacks=_column(*_SEX),
        ),
        Field(
            "race-rates",
            "selection and scoring rates and impact ratios by race or ethnicity",
            "6 RCNY § 5-301(b)(1)–(3)(ii), (c)(2)–(4)(ii)",
            _RULE,
            lacks=_column(*_RACE),
        ),
        Field(
            "crossed-rates",
            "the same by sex, race and ethnicity crossed",
            "6 RCNY § 5-301(b)(3)(iii), (c)(4)(iii)",
            _RULE,
            lacks=_no_crossing,
        ),
        Field(
            "median-score",
            "median score of all candidates",
            "6 RCNY § 5-301(c)(1)",
            _RULE,
            lacks=lambda audit: None if audit.selection else _no_rates(audit),
        ),
        Field(
            "unknown-count",
            "candidates left out because their category is unknown",
            "6 RCNY § 5-301(b)(5), (c)(5)",
            _RULE,
            lacks=_no_rates,
        ),
    ),
    (
        Elsewhere(
            "counts of people: candidates are pairs of query and document, so who is ranked for three "
            "positions counts three times",
            "6 RCNY § 5-300, selection rate",
            _RULE,
        ),
        Elsewhere(
            "rates for each group that a tool classifies people into (leadership styles and the like)",
            "6 RCNY § 5-301(b)(4)",
            _RULE,
        ),
        Elsewhere(
            "that the audit is not older than a year whenever the tool is used",
            "Administrative Code § 20-871(a)(1); 6 RCNY § 5-301(a)",
            _LAW,
        ),
        Elsewhere(
            "that whoever relies on historical data of others has given its own, or never used the tool",
            "6 RCNY § 5-302(a)",
            _RULE,
        ),
        Elsewhere("the summary, public until six months after the last use", "6 RCNY § 5-303(a), (c)", _RULE),
        Elsewhere("notices to candidates", "Administrative Code § 20-871(b); 6 RCNY § 5-304", _LAW),
    ),
    exclusions=True,
)

_ACT = Text(
    "Regulation (EU) 2022/2065 (Digital Services Act), OJ L 277, corrected in OJ L 310, 2022-12-01",
    "2022-10-27",
    "since 2024-02-17, parts of it earlier (Article 93)",
    "Articles 34(1) and 37(1) read in German; the letters of Article 37(4) not read, but for (h)",
)
_AUDITS = Text(
    "Delegated Regulation (EU) 2024/436, OJ L 2024/436, with the corrigendum of 2024-03-08",
    "2024-02-02",
    "in force since 2024-02-22",
    "Articles 1, 7 and 8 read, in English and German; the annexes not read",
)


def _dsa(name: str, asks: str, letter: str, lacks: Callable[[Audit], str | None] | None = None) -> Field:
    return Field(name, asks, f"Article 37(4)({letter})", _ACT, lacks=lacks, checked=False)


DSA = Profile(
    "eu-dsa",
    "Independent audit of a very large online platform or search engine (European Union)",
    (_ACT, _AUDITS),
    (
        *_common(_ACT, checked=False, auditor="Article 37(4)(b)"),
        _dsa("auditor-address", "address of the auditing organisation", "b"),
        _dsa("provider", "name, address and point of contact of the provider", "a"),
        _dsa("period", "period that the audit covers", "a"),
        _dsa("interests", "declaration of interests", "c"),
        _dsa("elements", "which elements of the service are audited", "d"),
        _dsa("methodology", "the method that was applied (methods.md)", "d", _no_headline),
        _dsa("findings", "the main findings (audit.json, report)", "e", _no_headline),
        _dsa("consulted", "third parties that were consulted, or none", "f"),
        Field(
            "opinion",
            "the audit opinion",
            "Article 37(4)(g)",
            _ACT,
            among=("positive", "positive with comments", "negative"),
            checked=False,
        ),
        Field(
            "recommendations",
            "operational recommendations and the time they should take, where the opinion is not positive",
            "Article 37(4)(h); Delegated Regulation (EU) 2024/436, Article 8(2)",
            _AUDITS,
            needed=lambda given, audit: given.get("opinion") != "positive",
        ),
        Field("risk", "which systemic risk is looked at, and for whom", "Article 34(1)(b)", _ACT),
    ),
    (
        Elsewhere("compliance with every obligation of Chapter III", "Article 37(1)(a)", _ACT),
        Elsewhere(
            "a conclusion, with reasonable assurance, for each obligation and commitment that is audited",
            "Delegated Regulation (EU) 2024/436, Article 8(1)",
            _AUDITS,
        ),
        Elsewhere(
            "the agreement between provider and auditor, annexed to the report",
            "Delegated Regulation (EU) 2024/436, Article 7(2)",
            _AUDITS,
        ),
        Elsewhere(
            "the report in the form of the template",
            "Delegated Regulation (EU) 2024/436, Article 1(d)",
            _AUDITS,
        ),
        Elsewhere("the provider's assessment of systemic risks", "Article 34", _ACT),
        Elsewhere("measures against these risks", "Article 35", _ACT, checked=False),
        Elsewhere("transmission and publication of the reports", "Article 42", _ACT, checked=False),
    ),
)

_AI = Text(
    "Regulation (EU) 2024/1689 (Artificial Intelligence Act), OJ L 2024/1689",
    "2024-07-12",
    "high-risk systems of Annex III from 2027-12-02, of Annex I from 2028-08-02, as amended",
    "Articles 9 to 15, 17, 26, 27 and Annex IV read as published in 2024",
)
_OMNIBUS = Text(
    "Regulation (EU) 2026/1744, which amends it",
    "2026-07-24",
    "in force since 2026-07-27",
    "dates from reports about it; Article 10 as agreed on 2026-05-13: paragraph 2 stays, 5 moves to Article "
    "4a; whether Annex IV changes was not checked",
)


def _ai(name: str, asks: str, clause: str, lacks: Callable[[Audit], str | None] | None = None) -> Field:
    return Field(name, asks, clause, _AI, lacks=lacks)


AI_ACT = Profile(
    "eu-ai-act",
    "Bias examination for the documentation of a high-risk AI system (European Union)",
    (_AI, _OMNIBUS),
    (
        *(
            replace(one, needed=_always) if one.name == "mitigation" else one
            for one in _common(
                _AI,
                auditor="Annex IV, point 2(g), dated and signed",
                date="Annex IV, point 2(g), dated and signed",
                purpose="Annex IV, point 1(a), intended purpose",
                threshold_reason="Article 9(8), defined before the test",
                mitigation="Article 10(2)(g)",
            )
        ),
        _ai("provider", "name of the provider", "Annex IV, point 1(a)"),
        _ai(
            "system-version",
            "version that was examined, and how it follows earlier ones",
            "Annex IV, point 1(a)",
        ),
        _ai("design-choices", "relevant design choices", "Article 10(2)(a)"),
        _ai(
            "data-source",
            "origin of the data and how they were collected; of personal data, for what purpose at first",
            "Article 10(2)(b)",
        ),
        _ai(
            "data-preparation",
            "how the data were annotated, labelled, cleaned and aggregated",
            "Article 10(2)(c)",
        ),
        _ai("assumptions", "what the data are taken to measure and to represent", "Article 10(2)(d)"),
        _ai("data-suitability", "whether the data are available, enough and suitable", "Article 10(2)(e)"),
        _ai("bias-examination", "examination for possible biases", "Article 10(2)(f)", _no_headline),
        _ai("data-gaps", "gaps or shortcomings of the data, and what is done about them", "Article 10(2)(h)"),
        _ai("representativeness", "for whom the data are representative, and for whom not", "Article 10(3)"),
        _ai("bounds", "measures and bounds that the system was tested against", "Article 9(8)", _no_bounds),
        _ai("metrics-reason", "why these measures suit this system", "Annex IV, point 4"),
    ),
    (
        Elsewhere(
            "a signature of the responsible persons, unless the bundle is signed (--sign)",
            "Annex IV, point 2(g)",
            _AI,
        ),
        Elsewhere("the rest of the technical documentation", "Article 11, Annex IV", _AI),
        Elsewhere("risk management", "Article 9", _AI),
        Elsewhere("automatic logs", "Article 12", _AI),
        Elsewhere("instructions for use, with how it performs for whom", "Article 13(3)", _AI),
        Elsewhere("human oversight", "Article 14", _AI),
        Elsewhere("robustness, cybersecurity and feedback loops", "Article 15", _AI),
        Elsewhere("quality management", "Article 17", _AI),
        Elsewhere("duties of deployers, and their assessment of fundamental rights", "Articles 26, 27", _AI),
    ),
)
PROFILES = {one.name: one for one in (GENERAL, NYC, DSA, AI_ACT)}
