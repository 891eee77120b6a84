"""What an audit for others to rely on has to state: the fields of a profile, and which of them are missing.

A profile follows a published text: every field names the clause that asks for it. It gathers what the text
asks for; it does not say that a law applies, or that it is complied with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from evenrank.auditing.result import Audit
from evenrank.auditing.selection import FEWEST_SHARE, small_categories
from evenrank.errors import InputError, check_choice, choices

FORMAT, VERSION = "evenrank-statement", 1
DISCLAIMER = (
    "A profile gathers what the text it names asks for. It is no legal advice, and no statement that a law "
    "applies or is complied with."
)
_OURS = "asked for by every bundle; no clause"

Given = Mapping[str, str]


def _always(given: Given, audit: Audit) -> bool:
    return True


def _never(given: Given, audit: Audit) -> bool:
    return False


def _bounded(given: Given, audit: Audit) -> bool:
    return bool(audit.conditions)


@dataclass(frozen=True)
class Field:
    """One thing that a text asks for.

    Attributes
    ----------
    name, asks, clause
        How it is given (`--field NAME=TEXT`), what is asked for, and where the text asks for it.
    among
        The values that it may have; any text where there are none.
    needed
        Whether it is needed, given the other fields and the audit.
    lacks
        For what evenrank computes itself: why it could not be, or None. Such a field cannot be given.
    """

    name: str
    asks: str
    clause: str
    among: tuple[str, ...] = ()
    needed: Callable[[Given, Audit], bool] = _always
    lacks: Callable[[Audit], str | None] | None = None


@dataclass(frozen=True)
class Text:
    """A published text and the date of the version that is followed."""

    title: str
    date: str


@dataclass(frozen=True)
class Profile:
    """The fields that a text asks for. `exclusions`: whether small categories may be left out of ratios."""

    name: str
    title: str
    follows: tuple[Text, ...]
    fields: tuple[Field, ...]
    exclusions: bool = False


@dataclass(frozen=True)
class Statement:
    """What is stated about an audit, by whom and following which text."""

    profile: Profile
    given: Given
    missing: Mapping[str, str]
    smallest: float = 0.0

    @property
    def complete(self) -> bool:
        return not self.missing

    def to_dict(self) -> dict[str, Any]:
        """As JSON knows it."""
        fields = []
        for one in self.profile.fields:
            row: dict[str, Any] = {"name": one.name, "asks": one.asks, "clause": one.clause}
            if one.lacks is None:
                row["value"] = self.given.get(one.name)
            else:
                row["computed"] = one.name not in self.missing
            if one.name in self.missing:
                row["missing"] = self.missing[one.name]
            fields.append(row)
        return {
            "format": FORMAT,
            "version": VERSION,
            "profile": self.profile.name,
            "title": self.profile.title,
            "follows": [{"text": text.title, "date": text.date} for text in self.profile.follows],
            "complete": self.complete,
            "missing": list(self.missing),
            "fields": fields,
            "smallest_share": self.smallest,
            "disclaimer": DISCLAIMER,
        }


def checked(profile: str, given: Given) -> tuple[Profile, dict[str, str]]:
    """The profile, and the fields in plain words; refuses names and values that it does not know."""
    check_choice("profile", profile, tuple(PROFILES))
    chosen = PROFILES[profile]
    known = {one.name: one for one in chosen.fields}
    plain = {name: " ".join(value.split()) for name, value in given.items()}
    for name, value in plain.items():
        if name not in known:
            raise InputError(f"profile {profile} has no field {name!r}; {choices(name, _givable(chosen))}")
        if known[name].lacks is not None:
            raise InputError(f"{name} is computed from the inputs and cannot be stated")
        if known[name].among and value not in known[name].among:
            raise InputError(f"{name} is {value!r}; one of {', '.join(known[name].among)}")
        if value and (name == "date" or name.endswith("-date")):
            _check_date(name, value)
    return chosen, plain


def state(profile: str, given: Given, audit: Audit) -> Statement:
    """Hold what is given and what was computed against a profile; what is missing is named, not refused."""
    chosen, plain = checked(profile, given)
    missing = {}
    for one in chosen.fields:
        if one.lacks is not None:
            if why := one.lacks(audit):
                missing[one.name] = why
        elif one.needed(plain, audit) and not plain.get(one.name):
            missing[one.name] = one.asks
    smallest = FEWEST_SHARE if chosen.exclusions and plain.get("exclusion-reason") else 0.0
    return Statement(chosen, plain, missing, smallest)


def _givable(profile: Profile) -> list[str]:
    return [one.name for one in profile.fields if one.lacks is None]


def _check_date(name: str, value: str) -> None:
    try:
        if date.fromisoformat(value).isoformat() == value:
            return
    except ValueError:
        pass
    raise InputError(f"{name} is {value!r}; write it as YYYY-MM-DD")


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


def _is(name: str, value: str) -> Callable[[Given, Audit], bool]:
    return lambda given, audit: given.get(name) == value


_AUDITOR = Field("auditor", "who made the audit", _OURS)
_DATE = Field("date", "day of the audit, YYYY-MM-DD", _OURS)
_PURPOSE = Field("purpose", "what the audit is for", _OURS)
_THRESHOLD = Field(
    "threshold-reason", "why the bounds of --fail-if are where they are", _OURS, needed=_bounded
)
_MITIGATION = Field("mitigation", "what was done against bias", _OURS, needed=_never)
_LANGUAGES = Field("languages", "languages of the documents", _OURS, needed=_never)
_COMMON = (_AUDITOR, _DATE, _PURPOSE, _THRESHOLD, _MITIGATION, _LANGUAGES)


def _with_clauses(**clauses: str) -> tuple[Field, ...]:
    """The common fields, those that a text asks for too with its clause."""
    return tuple(
        one
        if (clause := clauses.get(one.name.replace("-", "_"))) is None
        else Field(one.name, one.asks, clause, one.among, one.needed)
        for one in _COMMON
    )


GENERAL = Profile(
    "general",
    "An audit that others can check",
    (Text("evenrank, the auditor's edition (docs/auditors.md)", "2026-11-16"),),
    (*_COMMON, Field("bias", "a measure of bias with its interval", _OURS, lacks=_no_headline)),
)
NYC = Profile(
    "nyc-ll144",
    "Bias audit of an automated employment decision tool (New York City)",
    (
        Text("New York City, Local Law 144 of 2021 (Administrative Code §§ 20-870 to 20-874)", "2021-12-11"),
        Text("Rules of the City of New York, Title 6, §§ 5-300 to 5-304 (final rule)", "2023-04-06"),
    ),
    (
        *_with_clauses(auditor="6 RCNY § 5-300, independent auditor", date="6 RCNY § 5-303(a)(1)"),
        Field("independence", "why the auditor is independent of the tool", "6 RCNY § 5-300"),
        Field("data-source", "where the data come from, and what they are", "6 RCNY § 5-303(a)(1)"),
        Field("data-kind", "historical or test data", "6 RCNY § 5-302", among=("historical", "test")),
        Field(
            "test-data-reason",
            "why no historical data were used, and how the test data were made and obtained",
            "6 RCNY § 5-302(b)",
            needed=_is("data-kind", "test"),
        ),
        Field("distribution-date", "day from which the tool is used, YYYY-MM-DD", "6 RCNY § 5-303(a)(2)"),
        Field(
            "exclusion-reason",
            f"why categories with less than {FEWEST_SHARE:.0%} of the data take no part in impact ratios; "
            "without it none is left out",
            "6 RCNY § 5-301(d)",
            needed=_never,
        ),
        Field(
            "sex-rates",
            "selection and scoring rates and impact ratios by sex",
            "6 RCNY § 5-301(b)(1)–(3), (c)(1)–(4)",
            lacks=_column(*_SEX),
        ),
        Field(
            "race-rates",
            "selection and scoring rates and impact ratios by race or ethnicity",
            "6 RCNY § 5-301(b)(1)–(3), (c)(1)–(4)",
            lacks=_column(*_RACE),
        ),
        Field(
            "crossed-rates",
            "the same by sex, race and ethnicity crossed",
            "6 RCNY § 5-301(b)(3)(iii), (c)(4)(iii)",
            lacks=_no_crossing,
        ),
        Field(
            "unknown-count",
            "candidates left out because their category is unknown",
            "6 RCNY § 5-301(b)(5), (c)(5)",
            lacks=_no_rates,
        ),
    ),
    exclusions=True,
)
DSA = Profile(
    "eu-dsa",
    "Independent audit of a very large online platform or search engine (European Union)",
    (
        Text("Regulation (EU) 2022/2065 (Digital Services Act), OJ L 277", "2022-10-27"),
        Text("Delegated Regulation (EU) 2024/436, OJ L 2024/436", "2024-02-02"),
    ),
    (
        *_with_clauses(auditor="Regulation (EU) 2022/2065, Article 37(4)(b)"),
        Field("auditor-address", "address of the auditing organisation", "Article 37(4)(b)"),
        Field("provider", "name, address and point of contact of the provider", "Article 37(4)(a)"),
        Field("period", "period that the audit covers", "Article 37(4)(a)"),
        Field("interests", "declaration of interests", "Article 37(4)(c)"),
        Field("elements", "which elements of the service are audited", "Article 37(4)(d)"),
        Field(
            "methodology", "the method that was applied (methods.md)", "Article 37(4)(d)", lacks=_no_headline
        ),
        Field("findings", "the main findings (audit.json, report)", "Article 37(4)(e)", lacks=_no_headline),
        Field("consulted", "third parties that were consulted, or none", "Article 37(4)(f)"),
        Field(
            "opinion",
            "the audit opinion",
            "Article 37(4)(g)",
            among=("positive", "positive with comments", "negative"),
        ),
        Field(
            "recommendations",
            "measures and the time they should take, where the opinion is not positive",
            "Article 37(4)(h)",
            needed=lambda given, audit: given.get("opinion") != "positive",
        ),
        Field("risk", "which systemic risk is looked at, and for whom", "Articles 34(1)(b), 34(2)(a)"),
    ),
)
AI_ACT = Profile(
    "eu-ai-act",
    "Bias examination for the documentation of a high-risk AI system (European Union)",
    (Text("Regulation (EU) 2024/1689 (Artificial Intelligence Act), OJ L 2024/1689", "2024-07-12"),),
    (
        *_with_clauses(
            auditor="Annex IV, point 2(g)",
            date="Annex IV, point 2(g)",
            purpose="Annex IV, point 1(a), intended purpose",
            mitigation="Article 10(2)(g)",
        ),
        Field("provider", "name of the provider", "Annex IV, point 1(a)"),
        Field("system-version", "which version of the system was examined", "Annex IV, point 1(a)"),
        Field("data-source", "origin of the data and how they were collected", "Article 10(2)(b)"),
        Field("assumptions", "what the data are taken to measure and to represent", "Article 10(2)(d)"),
        Field("bias-examination", "examination for possible biases", "Article 10(2)(f)", lacks=_no_headline),
        Field(
            "data-gaps", "gaps or shortcomings of the data, and what is done about them", "Article 10(2)(h)"
        ),
        Field(
            "representativeness", "for whom the data are representative, and for whom not", "Article 10(3)"
        ),
        Field("metrics-reason", "why these measures suit this system", "Annex IV, point 4"),
    ),
)
PROFILES = {one.name: one for one in (GENERAL, NYC, DSA, AI_ACT)}


def exclusions(statement: Statement, audit: Audit) -> list[str]:
    """What was left out of impact ratios, or could have been, in sentences."""
    if audit.selection is None or not statement.profile.exclusions:
        return []
    small = small_categories(audit.selection)
    if not small:
        return [f"No category has less than {FEWEST_SHARE:.0%} of the candidates; none is left out."]
    named = ", ".join(small)
    if statement.smallest:
        return [f"Left out of impact ratios, with less than {FEWEST_SHARE:.0%} of the candidates: {named}."]
    return [
        f"With less than {FEWEST_SHARE:.0%} of the candidates, and not left out: {named}. A ratio of so few "
        "says little."
    ]
