"""The report's page: complete, self-contained, small, and harmless whatever the data hold."""

from __future__ import annotations

import html.parser
import json
import re
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import evenrank as er
from evenrank import demo
from evenrank.auditing import Audit
from evenrank.errors import InputError
from evenrank.show.figure import embedded, slug
from evenrank.show.report import render

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)><!-- ${7*7} {{7*7}} \"'>"


@pytest.fixture(scope="module")
def page(audit: Audit) -> str:
    return render(audit)


class Outline(html.parser.HTMLParser):
    """Ids, headings, scripts and addresses of a page, and whether every element is closed."""

    VOID = frozenset({"meta", "br", "img", "link", "input", "hr"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.headings: list[int] = []
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.handlers: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("src", "href", "action", "data", "srcset"):
                self.addresses.append(value or "")
            if name.startswith("on"):
                self.handlers.append(name)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, (tag, self.open[-3:])
        self.open.pop()


def test_the_page_opens_with_the_verdict(page: str) -> None:
    assert "bm25 leans male in its top 10 results; cannot tell whether dense leans." in page
    assert page.index('id="verdict"') < page.index('id="values"') < page.index('id="provenance"')


def test_the_first_thing_is_a_line_for_each_run(page: str) -> None:
    table = page[page.index('<table class="summary">') : page.index('<div class="cards">')]
    assert page.index('class="headline"') < page.index('<table class="summary">')
    rows = re.findall(r'<th scope="row">(\w+)', table)
    assert rows == ["bm25", "dense"]
    assert "leans male" in table and "cannot tell" in table and "n 48" in table
    assert "nDCG@10 +0.242" in table and "not significant" in table


def test_what_is_not_established_is_folded(page: str) -> None:
    card = page[page.index('aria-labelledby="card-2"') : page.index("</article>", page.index("card-2"))]
    folded = card[card.index('<details class="open">') :]
    assert "No clear difference from bm25" in folded and "No clear difference" not in card[: -len(folded)]
    assert "More effective than bm25" in card[: -len(folded)]


def test_comparisons_come_by_effect_established_ones_first(audit: Audit) -> None:
    from evenrank.show.tables import values

    told = [one for one, _ in values(audit, {}).content["comparisons"]]
    keys = [(not one.significant, -abs(one.comparison.effect or 0)) for one in told]
    assert keys == sorted(keys) and len(told) == len(audit.comparisons)


def test_every_section_with_data_is_there_and_no_other(page: str) -> None:
    ids = Outline(page).ids
    for there in ("values", "cutoff", "change", "words", "passages", "stereotype", "gendered", "psychology"):
        assert there in ids
    for absent in ("tradeoff", "rankshift", "representation", "association"):
        assert absent not in ids


def test_the_page_is_well_formed_and_its_ids_are_unique(page: str) -> None:
    outline = Outline(page)
    assert not outline.open
    assert len(outline.ids) == len(set(outline.ids))


def test_headings_skip_no_level(page: str) -> None:
    levels = Outline(page).headings
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_nothing_is_loaded_from_elsewhere(page: str) -> None:
    outline = Outline(page)
    assert all(address.startswith("#") for address in outline.addresses)
    assert not outline.handlers
    assert "default-src &#39;none&#39;" in page


def test_the_same_audit_gives_the_same_bytes(audit: Audit, page: str) -> None:
    assert render(audit) == page


def test_hostile_text_stays_text_everywhere() -> None:
    docs = {"d1<b>": f"he {HOSTILE} him", "d2": f"she {HOSTILE} her", "d3": "nothing"}
    run = {"q1": {"d1<b>": 3.0, "d2": 2.0, "d3": 1.0}, "q2": {"d2": 2.0, "d1<b>": 1.0}}
    other = {"q1": {"d2": 3.0, "d3": 2.0}, "q2": {"d1<b>": 2.0, "d2": 1.0}}
    found = er.audit(
        {HOSTILE: run, "b": other},
        docs=docs,
        queries={"q1": f"nurse {HOSTILE}", "q2": f"engineer {HOSTILE}"},
        qrels={"q1": {"d1<b>": 1}, "q2": {"d2": 1}},
        fail_if="abs(ARaB@10)>0.0001",
    )
    text = render(found, title=HOSTILE)
    outline = Outline(text)
    assert "img" not in outline.tags and not outline.handlers
    assert outline.tags.count("script") == 3
    assert text.count("</script>") == 3
    data = text.split('id="charts">')[1].split("</script>")[0]
    assert "<" not in data and HOSTILE in json.dumps(json.loads(data), ensure_ascii=False).replace('\\"', '"')


def test_json_in_the_page_can_end_no_element() -> None:
    value = {"a": "</script><!--&\u2028"}
    text = embedded(value)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == value


@pytest.mark.slow
def test_six_thousand_queries_and_six_runs_stay_under_three_megabytes() -> None:
    rng = np.random.default_rng(0)
    words = ["he", "she", "man", "woman", "house", "river", "nurse", "doctor", "long", "story"]
    docs = {f"d{i}": " ".join(rng.choice(words, 120)) for i in range(400)}
    queries = {f"q{i}": " ".join(rng.choice(words, 6)) + " " + "x" * 60 for i in range(6000)}
    names = pl.Series(list(docs))

    def run() -> pl.DataFrame:
        picked = np.argsort(rng.random((6000, 400)), axis=1)[:, :10]
        return pl.DataFrame(
            {
                "query_id": np.repeat(list(queries), 10),
                "doc_id": names.gather(picked.ravel()),
                "score": np.tile(np.arange(10, 0, -1.0), 6000),
            }
        )

    qrels = {query: {f"d{i % 400}": 1} for i, query in enumerate(queries)}
    runs = {f"run {i}": run() for i in range(6)}
    found = er.audit(runs, docs=docs, queries=queries, qrels=qrels, resamples=50)  # the size is the same
    assert len(render(found).encode()) < 3_000_000


def test_further_findings_have_their_sections(audit: Audit) -> None:
    rng = np.random.default_rng(1)
    tradeoff = pl.DataFrame({"name": ["a", "b", "c"], "bias": [0.3, -0.1, 0.2], "utility": [0.5, 0.4, 0.3]})
    shift = pl.DataFrame({"query_id": list("abcd"), "before": [1, 5, 9, 2], "after": [4, 5, 1, 900]})
    association = er.association(rng.normal(5, 1, 200), rng.normal(6, 1, 200))
    results = [
        {"query": q, "doc_id": f"{q}{i}", "rank": i + 1, "group": g}
        for q in "uvw"
        for i, g in enumerate(["female", "male", "male"])
    ]
    shown = er.represent(results, {q: {"female": 0.5} for q in "uvw"}, at=2)
    text = render(audit, tradeoff=tradeoff, rank_shift=shift, association=association, representation=shown)
    ids = Outline(text).ids
    assert len(ids) == len(set(ids))
    assert {"tradeoff", "rankshift", "association", "representation", "h-representation"} <= set(ids)
    assert "2 of 3 settings are on the Pareto front" in text
    assert "Of 4 queries 2 fall and 1 rise" in text


def test_a_counterfactual_audit_speaks_about_documents(audit: Audit) -> None:
    shift = pl.DataFrame(
        {"query_id": list("aab"), "doc_id": list("xyz"), "before": [1, 5, 9], "after": [4, 3, 9]}
    ).with_columns(group=pl.Series(["female", "male", "male"]))
    text = render(audit, rank_shift=shift)
    assert "Of 3 documents 1 fall and 1 rise when the gender of the text is swapped" in text
    assert "female ones move by +3.0, male ones move by −1.0 ranks" in text


def test_what_the_report_does_not_know_is_an_error(audit: Audit) -> None:
    with pytest.raises(InputError, match="the report has no 'trade'"):
        render(audit, trade=1)
    with pytest.raises(InputError, match="tradeoff needs a column 'utility'"):
        render(audit, tradeoff=pl.DataFrame({"bias": [1.0]}))


def test_one_run_without_texts_has_a_report_too() -> None:
    tally = er.tally({"a": "he said", "b": "she said", "c": "so"})
    found = er.audit({"q": {"a": 3.0, "b": 2.0, "c": 1.0}, "r": {"b": 1.0, "a": 2.0}}, tally=tally)
    outline = Outline(render(found))
    assert "change" not in outline.ids and "gendered" not in outline.ids and not outline.open


def test_without_judgments_psychology_speaks_about_the_results() -> None:
    here = demo.folder()
    found = er.audit(here / "bm25.run", ["ARaB@10"], docs=here / "docs.tsv", genders=here / "genders.tsv")
    assert "in the top 10 results of bm25" in render(found)


def test_effectiveness_alone_has_a_report_too() -> None:
    found = er.audit({"q": {"a": 2.0}, "r": {"b": 2.0}}, qrels={"q": {"a": 1}, "r": {"a": 1}})
    assert "No measure of bias could be computed" in render(found)


def test_names_become_harmless_ids() -> None:
    assert slug("BM25 + RM3 <x>") == "bm25-rm3-x"
    assert slug("…") == "x"


@pytest.mark.slow
def test_a_hundred_runs_have_a_report_that_can_be_read() -> None:
    tally = er.tally({"a": "he said", "b": "she said", "c": "so"})
    orders = [{"a": 3.0, "b": 2.0, "c": 1.0}, {"b": 3.0, "c": 2.0, "a": 1.0}]
    runs = {f"run {i}": {"q": orders[i % 2], "r": orders[i % 3 % 2]} for i in range(100)}
    found = er.audit(runs, ["ARaB@3"], tally=tally, baseline="run 99", resamples=50)
    text = render(found)
    outline = Outline(text)
    assert not outline.open and outline.tags.count("article") == 12
    assert len(text.encode()) < 1_500_000
    assert text.count('<table class="values">') == 20  # the baseline and five others in each
    assert "and 92 more" in text and "12 of 100 runs are drawn" in text
    assert max(len(line) for line in str(found).splitlines()) < 200  # the table breaks, lines do not


def test_every_p_stands_beside_an_interval_and_an_effect(page: str) -> None:
    for table in re.findall(r"<thead>(.*?)</thead>", page, re.DOTALL):
        heads = re.findall(r"<th[^>]*>([^<]*)</th>", table)
        if "p" in heads:
            assert {"interval", "effect", "p corrected"} <= set(heads)
