"""POST /v1/evaluate: the values are those of er.measure, the colours stand where the words stand."""

from __future__ import annotations

import math
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

import evenrank as er
from evenrank.measures.groups import GroupMeasure
from evenrank.server import models
from evenrank.server.evaluating import Text, evaluate
from evenrank.text.matcher import Matcher

WORDS = "she her woman he his man boy girl nurse the of work Ärztin 漢字 mother-in-law father".split()
lists = st.lists(
    st.tuples(
        st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join),
        st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join),
        st.sampled_from(["female", "male", "f", None]),
    ),
    min_size=1,
    max_size=14,
)
MATCHER = Matcher("rekabsaz2020")


def posted(client: TestClient, **content: Any) -> dict[str, Any]:
    answer = client.post("/v1/evaluate", json=content)
    assert answer.status_code == 200, answer.text
    models.EvaluateResponse.model_validate(answer.json(), strict=True)  # as the description promises
    found: dict[str, Any] = answer.json()
    return found


@given(results=lists, at=st.integers(1, 12), share=st.sampled_from([0.0, 0.15, 0.3, 0.5, 1.0]))
def test_values_are_those_of_measure(
    results: list[tuple[str, str, str | None]], at: int, share: float
) -> None:
    texts = [Text(title, text) for title, text, _ in results]
    labels = [label for *_, label in results]
    found = evaluate(MATCHER, texts, labels=labels, target={"female": share}, at=at)
    ids = [f"d{i}" for i in range(len(texts))]
    run = {"q": {doc: float(len(ids) - i) for i, doc in enumerate(ids)}}
    docs = [{"doc_id": d, "title": t.title, "text": t.body} for d, t in zip(ids, texts, strict=True)]
    shown = dict(zip(ids, found.labels or (), strict=False))
    grouped = {"labels": {d: label or "" for d, label in shown.items()}, "targets": {"q": {"female": share}}}
    for value in found.values():
        measure = er.parse(value.measure)
        groups = isinstance(measure, GroupMeasure)
        if groups and len(set(filter(None, shown.values()))) < 2:
            continue  # er.measure knows only the groups that documents show
        more = grouped if groups else {}
        expected = er.measure(run, measure, docs=docs, confidence=None, **more)[measure].value
        if expected is None:
            assert value.value is None
        else:
            assert value.value is not None and math.isclose(value.value, expected, abs_tol=1e-12)


def test_a_lean_is_said_in_plain_words(client: TestClient) -> None:
    texts = ["He said his team won.", "The team won.", "She trains."]
    found = posted(client, query="team", results=[{"id": str(i), "text": t} for i, t in enumerate(texts)])
    assert found["verdict"]["side"] == "male"
    assert found["verdict"]["text"].startswith("The top 3 results lean male: 1 female word and 2 male words")
    assert [r["counts"] for r in found["results"]] == [
        {"female": 0, "male": 2},
        {"female": 0, "male": 0},
        {"female": 1, "male": 0},
    ]
    assert math.isclose(sum(r["contribution"] for r in found["results"]), found["verdict"]["lean"])


@given(results=lists)
def test_spans_hold_the_words(results: list[tuple[str, str, str | None]]) -> None:
    texts = [Text(title, text) for title, text, _ in results]
    found = evaluate(MATCHER, texts)
    for text, row in zip(texts, found.results([None] * len(texts)), strict=True):
        held = [
            (text.title if span["field"] == "title" else text.body)[span["start"] : span["end"]].lower()
            for span in row["spans"]
        ]
        assert held == [span["word"] for span in row["spans"]]
        assert len(held) == sum(row["counts"].values())


def test_representation_follows_the_target(client: TestClient) -> None:
    results = [{"group": g} for g in ["male"] * 9 + ["female"]]
    found = posted(client, results=results, target={"female": 0.3})
    female = next(row for row in found["representation"] if row["group"] == "female")
    assert (female["shown"], female["wanted"], female["bias"]) == (0.1, 0.3, -0.2)
    assert found["groups"] == "given"
    assert "There are fewer female results than there should be" in found["verdict"]["text"]
    assert {m["measure"]: m["value"] for m in found["measures"]}["MB(group='female')@10"] == -0.2


def test_attributes_and_their_crossing_are_measured_as_in_a_run(client: TestClient) -> None:
    rows = [
        ("female", "art"),
        ("male", "law"),
        (None, "law"),
        ("male", None),
        (None, None),
        ("female", "law"),
    ]
    given = [
        {name: group for name, group in zip(("Gender", "field"), row, strict=True) if group} for row in rows
    ]
    found = posted(client, results=[{"text": "a", "attributes": of} for of in given], at=3)
    told = {one["measure"]: one["value"] for one in found["measures"]}
    labels = {str(n): {name.lower(): g for name, g in of.items()} for n, of in enumerate(given) if of}
    run = {"q": {str(n): -float(n) for n in range(len(rows))}}
    for attribute in ("gender", "field", "gender × field"):
        for name in ("AWRF", "NDKL"):
            measure = f"{name}(attribute='{attribute}')@3"
            expected = er.measure(run, measure, labels=labels, confidence=None)[0].value
            assert math.isclose(told[str(er.parse(measure))], expected, abs_tol=1e-12)
    assert not any(
        "attribute" in one["measure"] for one in posted(client, results=[{"text": "a"}])["measures"]
    )


def test_an_attribute_name_may_hold_a_null_character(client: TestClient) -> None:
    posted(client, results=[{"attributes": {"\x00": "0"}}])


def test_a_measure_of_an_attribute_can_be_asked_for_beside_the_usual_ones() -> None:
    asked = ["Exposure(attribute='gender', group='female')@3", "MinSkew(attribute='field')@3"]
    found = evaluate(
        MATCHER,
        [Text("", "a")] * 3,
        attributes=[{"gender": "female"}, {"gender": "male"}, {}],
        measures=asked,
    )
    told = {one.measure: one.value for one in found.values()}
    assert told[str(er.parse(asked[0]))] is not None
    assert str(er.parse(asked[1])) not in told  # nobody said a field
    for refused in ("EEL(attribute='gender')@3", "AWRF(attribute='gender', target='relevant')@3"):
        with pytest.raises(er.InputError, match="cannot be computed from one list"):
            evaluate(MATCHER, [Text("", "a")], measures=[refused])


def test_what_is_wrong_with_attributes_is_said_in_one_line(client: TestClient) -> None:
    many = [{"attributes": {"a": f"x{n}", "b": f"y{n}"}} for n in range(30)]
    answer = client.post("/v1/evaluate", json={"results": many})
    assert answer.status_code == 422
    assert answer.json()["detail"] == "a × b has 961 groups; at most 400 can be distinguished in one list"
    unknown = posted(client, results=[{"attributes": {"a": "unknown"}}] * 2)
    assert not any("attribute" in one["measure"] for one in unknown["measures"])
    each_its_own = [{"attributes": {f"a{n}": "x"}} for n in range(5)]
    answer = client.post("/v1/evaluate", json={"results": each_its_own})
    assert answer.status_code == 422
    assert answer.json()["detail"] == "the results have 5 attributes; at most 4 are measured"
    answer = client.post("/v1/evaluate", json={"results": [{}, {"attributes": {"Sex": "x", "sex ": "y"}}]})
    assert answer.status_code == 422 and answer.json()["detail"] == "result 2 has the attribute sex twice"
    for wrong in ({" ": "x"}, {"a × b": "x"}, {"": "x"}, {"a": ""}, {"a": 1}, dict.fromkeys("abcde", "x")):
        found = client.post("/v1/evaluate", json={"results": [{"attributes": wrong}]})
        assert found.status_code == 422 and "\n" not in found.json()["detail"]


def test_groups_are_inferred_from_words_only_for_a_target(client: TestClient) -> None:
    results = [{"text": "she"}, {"text": "he"}]
    assert posted(client, results=results)["groups"] is None
    assert posted(client, results=results, target={"f": 0.5})["groups"].startswith("inferred")


def test_a_limit_brings_the_nearest_order_that_keeps_it(client: TestClient) -> None:
    results = [{"text": t} for t in ("he he he", "his man", "she", "her woman")]
    found = posted(client, results=results, limit=0.2, at=4)["limit"]
    assert not found["kept"] and found["possible"]
    assert sorted(found["order"]) == [1, 2, 3, 4] and abs(found["value"]) <= 0.2
    again = posted(client, results=[results[i - 1] for i in found["order"]], limit=0.2, at=4)["limit"]
    assert again["kept"] and again["order"] == [1, 2, 3, 4]


@pytest.mark.parametrize("text", ["", "\x00", "a\x00she\x00", "🙂 she", "\ufeffhe", "she" * 10_000])
def test_odd_texts_are_texts(client: TestClient, text: str) -> None:
    found = posted(client, query=text[:900], results=[{"id": text[:500], "title": text[:900], "text": text}])
    assert found["results"][0]["id"] == text[:500]


def test_nothing_to_measure_is_said(client: TestClient) -> None:
    found = posted(client, results=[{}])
    assert found["verdict"] == {
        "side": None,
        "lean": 0.0,
        "text": "The only result holds no female or male words.",
    }


@given(results=lists)
def test_swapping_the_groups_turns_the_lean_around(results: list[tuple[str, str, str | None]]) -> None:
    swapped = Matcher({"female": MATCHER.lexicon.groups["male"], "male": MATCHER.lexicon.groups["female"]})
    texts = [Text(title, text) for title, text, _ in results]
    assert math.isclose(
        evaluate(MATCHER, texts).lean or 0.0, -(evaluate(swapped, texts).lean or 0.0), abs_tol=1e-12
    )
