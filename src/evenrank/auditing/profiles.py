"""What an audit for others to rely on states: the fields of a profile, and which of them are missing.

A profile follows published texts (`rules.py`). It gathers what they ask for; it does not say that a law
applies, or that it is complied with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from evenrank.auditing.result import Audit
from evenrank.auditing.rules import PROFILES, Given, Profile
from evenrank.auditing.selection import FEWEST_SHARE, small_categories
from evenrank.errors import InputError, check_choice, choice_hint

FORMAT, VERSION = "evenrank-statement", 2
DISCLAIMER = (
    "A profile gathers what the text it names asks for. It is no legal advice, and no statement that a law "
    "applies or is complied with."
)


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
            row: dict[str, Any] = {
                "name": one.name,
                "asks": one.asks,
                "clause": one.cited,
                "text": one.text.title,
                "date": one.text.date,
                "checked": one.checked,
            }
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
            "follows": [
                {"text": text.title, "date": text.date, "applies": text.applies, "read": text.read}
                for text in self.profile.follows
            ],
            "complete": self.complete,
            "missing": list(self.missing),
            "fields": fields,
            "not_delivered": [
                {"asks": one.asks, "clause": one.cited, "text": one.text.title, "date": one.text.date}
                for one in self.profile.elsewhere
            ],
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
            raise InputError(
                f"profile {profile} has no field {name!r}; {choice_hint(name, _givable(chosen))}"
            )
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
