"""What the interface takes and gives, field by field: the source of its OpenAPI description."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, create_model

RESULTS, TITLE, TEXT, QUERY, QUERIES, DEEPEST = 100, 2_000, 50_000, 1_000, 1_000, 100
"""How many results, how long their titles and texts, queries, how many of these, and how deep lists are."""

ATTRIBUTES = 4
"""Of all results together."""

Share = Annotated[float, Field(ge=0, le=1)]
Group = Annotated[str, Field(min_length=1, max_length=64)]
Bound = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


def _whole(value: Any) -> Any:
    """JSON has one kind of number: 10.0 is 10."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_BLANK = r"\t-\r\u001c-\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
"""Written out, since JavaScript and Python mean different characters by ``\\s``."""
ATTRIBUTE = rf"^[^*×]*[^{_BLANK}*×][^*×]*$"
"""What an attribute may be called; the two signs cross attributes."""


def _attribute(value: str) -> str:
    if not re.search(ATTRIBUTE, value):
        raise ValueError("an attribute has a name, without * and ×")
    return value


Attribute = Annotated[Group, AfterValidator(_attribute)]
Depth = Annotated[int, Field(ge=1, le=DEEPEST), BeforeValidator(_whole)]


class Given(BaseModel):
    """What comes from outside: unknown fields and values of another type are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Problem(BaseModel):
    """What is wrong, in one line."""

    detail: str


class Result(Given):
    """One result, as the engine shows it."""

    id: str | None = Field(None, max_length=512, description="Its name; returned as it came.")
    title: str | None = Field(None, max_length=TITLE)
    text: str | None = Field(None, max_length=TEXT, description="Snippet or full text.")
    group: str | None = Field(None, max_length=64, description="The group it shows, if known: female, …")
    attributes: dict[Attribute, Group] | None = Field(
        None,
        max_length=ATTRIBUTES,
        description="Or its groups by attribute: gender, field, …; two of them are crossed too.",
        json_schema_extra={"propertyNames": {"minLength": 1, "maxLength": 64, "pattern": ATTRIBUTE}},
    )


class EvaluateRequest(Given):
    """A result list to look at."""

    query: str = Field("", max_length=QUERY)
    results: list[Result] = Field(min_length=1, max_length=RESULTS, description="Best first.")
    target: dict[Group, Share] | None = Field(
        None,
        max_length=20,
        description="The share of results that each group should have, together at most 1.",
    )
    at: Depth = Field(10, description="The cut-off: results looked at.")
    limit: Bound | None = Field(None, description="Also find the nearest order with |ARaB| within this.")

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "query": "head nurse",
                    "results": [
                        {"id": "d1", "text": "She leads the ward, and her team trusts her."},
                        {"id": "d2", "text": "The head nurse plans the shifts."},
                        {"id": "d3", "text": "He has been a head nurse for ten years."},
                    ],
                    "target": {"female": 0.5},
                    "limit": 0.1,
                }
            ]
        }
    )


class ClassifyRequest(Given):
    """Queries whose gender is asked for."""

    queries: list[Annotated[str, Field(max_length=QUERY)]] = Field(min_length=1, max_length=QUERIES)

    model_config = ConfigDict(json_schema_extra={"examples": [{"queries": ["female surgeon", "best pizza"]}]})


class SearchRequest(Given):
    """A query for the collection that is served."""

    query: str = Field(max_length=QUERY)
    ranker: str
    depth: Depth = 10
    constrain: Bound | None = Field(
        None, description="Re-rank, as usefully as possible, so that |ARaB@depth| is within this bound."
    )


def search_request(rankers: tuple[str, ...]) -> type[SearchRequest]:
    """The request of a server that offers these rankers."""
    kind: Any = Literal[rankers]
    made = create_model(
        "SearchRequest",
        __base__=SearchRequest,
        __doc__=SearchRequest.__doc__,
        ranker=(kind, Field(rankers[0])),
    )
    example: dict[str, Any] = {"query": "head nurse", "ranker": rankers[0], "constrain": 0.1}
    made.model_config["json_schema_extra"] = {"examples": [example]}
    return made


class Gender(BaseModel):
    """What a query seems to be about, with the probability of each label: a guess from its words.

    The label is ``other`` for both genders, another one, and where no class is more likely than the others.
    """

    text: str
    label: Literal["female", "male", "neutral", "other"]
    female: float
    male: float
    neutral: float


class Span(BaseModel):
    """A word of a group; `start` and `end` count characters (code points) of the field."""

    field: Literal["title", "text"]
    start: int
    end: int
    group: str
    word: str = Field(description="The word as the lexicon spells it.")


class Colours(BaseModel):
    """What one result holds, and what it adds to the lean of the list."""

    rank: int
    id: str | None
    group: str | None
    counts: dict[str, int]
    tokens: int
    contribution: float
    spans: list[Span]


class Measured(BaseModel):
    """A measure of the list; null where it is undefined, and `undefined` says why."""

    measure: str
    value: float | None
    parts: dict[str, float]
    meaning: str
    reading: str
    undefined: str | None


class Represented(BaseModel):
    """A group's share of the results: shown, wished for, the nearest that is possible, and the difference."""

    group: str
    shown: float
    target: float
    wanted: float
    bias: float
    of: int


class Limit(BaseModel):
    """Whether the list keeps to the bound, and the nearest order that does: ranks as they came, from 1."""

    condition: str
    kept: bool
    possible: bool
    status: str
    order: list[int]
    value: float | None
    loss: float


class Verdict(BaseModel):
    """The lean of the list in plain words. `side` is null near balance."""

    side: str | None
    lean: float | None
    text: str


class EvaluateResponse(BaseModel):
    """One result list, measured and coloured."""

    query: Gender
    at: int
    verdict: Verdict
    measures: list[Measured]
    results: list[Colours]
    groups: str | None = Field(description="Where the groups of results come from; null if none are known.")
    representation: list[Represented]
    limit: Limit | None
    lexicon: str


class ClassifyResponse(BaseModel):
    queries: list[Gender]


class Found(Colours):
    """A result of the collection."""

    score: float
    text: str
    moved: int = Field(description="Ranks it moved up (below 0: down) by re-ranking.")


class SearchResponse(BaseModel):
    """The results of one ranker."""

    query: Gender
    ranker: str
    verdict: Verdict
    constrained: Limit | None
    results: list[Found]


class Health(BaseModel):
    status: Literal["ok"]
    evenrank: str
    documents: int | None
    rankers: list[str]
