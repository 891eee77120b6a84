"""Bound measures inside ir_measures and PyTerrier give what `er.measure` gives."""

from pathlib import Path
from typing import Any

import ir_measures
import pandas as pd
import pytest
from ir_measures import Qrel, ScoredDoc

import evenrank as er
from evenrank import ARaB, InputError, NFaiRR, P, RaB, nDCG

DOCS = {"d1": "he and his", "d2": "she said", "d3": "nothing", "d4": "women and men"}
RUN = {"q1": {"d1": 3.0, "d2": 2.0}, "q2": {"d4": 2.0, "d3": 1.0}, "q3": {"d2": 1.0, "d3": 0.5}}
QRELS = {"q1": {"d1": 1}, "q2": {"d3": 1}, "q3": {"d2": 0}}
BIAS = [ARaB @ 2, NFaiRR @ 2]


@pytest.fixture(scope="module")
def tally() -> er.Tally:
    return er.tally(DOCS)


def values(tally: er.Tally, run: Any = RUN, qrels: Any = QRELS, measures: Any = BIAS) -> list[float]:
    found = er.measure(run, measures, tally=tally, qrels=qrels, confidence=None)
    return [measurement.value for measurement in found]


def test_ir_measures_gives_the_same_values_for_every_shape_of_run(tally: er.Tally) -> None:
    bound = er.bind(BIAS, tally=tally)
    rows = [ScoredDoc(q, d, s) for q, docs in RUN.items() for d, s in docs.items()]
    judged = [Qrel(q, d, r) for q, docs in QRELS.items() for d, r in docs.items()]
    for run in (RUN, rows, iter(rows), pd.DataFrame(rows)):
        for qrels in (QRELS, judged, pd.DataFrame(judged)):
            run = iter(rows) if hasattr(run, "__next__") else run
            found = ir_measures.calc_aggregate(bound, qrels, run)
            assert [found[m] for m in bound] == pytest.approx(values(tally))


def test_values_of_single_queries_are_the_same_when_all_are_ranked(tally: er.Tally) -> None:
    bound = er.bind([ARaB @ 2], tally=tally)
    found = {m.query_id: m.value for m in ir_measures.iter_calc(bound, QRELS, RUN)}
    expected = er.measure(RUN, [ARaB @ 2], tally=tally, confidence=None)[ARaB @ 2].per_query()
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    "judged",
    [
        QRELS | {"q8": {"d1": 1}, "q9": {"d2": 1}},  # judged, nothing ranked
        {"q1": {"d1": 1}},  # ranked, not judged
        {"q1": {"d1": 1}, "q9": {"d2": 1}},  # both
    ],
)
@pytest.mark.parametrize("others", [[], [nDCG @ 10]])
def test_the_plain_mean_is_the_mean_over_ranked_queries(tally: er.Tally, judged: Any, others: Any) -> None:
    bound = er.bind([*BIAS, *others], tally=tally)
    found = ir_measures.calc_aggregate(bound, judged, RUN)
    assert [found[m] for m in bound] == pytest.approx(values(tally, qrels=judged, measures=[*BIAS, *others]))


def test_a_mixed_list_keeps_its_order_and_effectiveness(tally: er.Tally) -> None:
    bound = er.bind([P @ 1, ARaB @ 2, "nDCG@10"], tally=tally)
    assert [str(m).split("[")[0] for m in bound] == ["P@1", "ARaB@2", "nDCG@10"]
    assert bound[0] == P @ 1


def test_measures_bound_to_different_tallies_do_not_collapse(tally: er.Tally) -> None:
    other = er.tally(dict.fromkeys(DOCS, "he"))
    bound = [*er.bind([RaB @ 1], tally=tally), *er.bind([RaB @ 1], tally=other)]
    assert bound[0] != bound[1]
    found = ir_measures.calc_aggregate(bound, QRELS, RUN)
    assert found[bound[0]] != found[bound[1]]
    assert er.bind([RaB @ 1], tally=tally)[0] == bound[0]


def test_different_backgrounds_do_not_collapse(tally: er.Tally) -> None:
    background = {query: dict.fromkeys(DOCS, 1.0) for query in RUN}
    (own,) = er.bind([NFaiRR @ 1], tally=tally)
    (chosen,) = er.bind([NFaiRR @ 1], tally=tally, background=background)
    assert own != chosen
    found = ir_measures.calc_aggregate([own, chosen], QRELS, RUN)
    expected = er.measure(RUN, [NFaiRR @ 1], tally=tally, background=background, confidence=None)
    assert found[chosen] == pytest.approx(expected[NFaiRR @ 1].value)


def test_binding_is_the_last_step(tally: er.Tally) -> None:
    bound = er.bind([ARaB @ 2], tally=tally)[0]
    with pytest.raises(InputError, match="before binding"):
        bound @ 5
    with pytest.raises(InputError, match="needs a cut-off"):
        er.bind([ARaB], tally=tally)
    with pytest.raises(InputError, match="tally"):
        er.bind([ARaB @ 2])


def test_the_provider_is_installed_once(tally: er.Tally) -> None:
    for _ in range(3):
        er.bind([ARaB @ 2], tally=tally)
    names = [provider.NAME for provider in ir_measures.DefaultPipeline.providers]
    assert names.count("evenrank") == 1


def test_documents_outside_the_collection_are_refused(tally: er.Tally) -> None:
    run = {"q1": {"x": 1.0}}
    with pytest.raises(InputError, match="the collection lacks"):
        ir_measures.calc_aggregate(er.bind([ARaB @ 2], tally=tally), QRELS, run)
    bound = er.bind([ARaB @ 2], tally=tally, missing="zero")
    run = {"q1": {"x": 1.0}, "q2": {"d3": 1.0}}
    assert ir_measures.calc_aggregate(bound, QRELS, run)[bound[0]] == 0
    with pytest.raises(InputError, match="missing cannot be 'zeros'; did you mean 'zero'"):
        er.bind([ARaB @ 2], tally=tally, missing="zeros")


# PyTerrier


def frames(run: Any, qrels: Any) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    results = pd.DataFrame(
        [(q, d, s) for q, docs in run.items() for d, s in docs.items()], columns=["qid", "docno", "score"]
    )
    judged = pd.DataFrame(
        [(q, d, r) for q, docs in qrels.items() for d, r in docs.items()], columns=["qid", "docno", "label"]
    )
    topics = pd.DataFrame({"qid": list({**run, **qrels}), "query": "words"})
    return results, topics, judged


@pytest.fixture(scope="module")
def pt() -> Any:
    return pytest.importorskip("pyterrier")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("qrels", [QRELS, QRELS | {"q9": {"d1": 1}}, {"q1": {"d1": 1}, "q9": {"d1": 1}}])
@pytest.mark.parametrize("measures", [BIAS, [ARaB @ 2, nDCG @ 10, NFaiRR @ 2]])
def test_an_experiment_gives_the_same_values(pt: Any, tally: er.Tally, qrels: Any, measures: Any) -> None:
    results, topics, judged = frames(RUN, qrels)
    bound = er.bind(measures, tally=tally)
    table = pt.Experiment([results], topics, judged, bound, names=["run"])
    found = [table[str(m)].item() for m in bound]
    assert found == pytest.approx(values(tally, qrels=qrels, measures=measures))


@pytest.mark.filterwarnings("ignore")
def test_an_experiment_takes_effectiveness_that_was_not_bound(pt: Any, tally: er.Tally) -> None:
    qrels = {"q1": {"d1": 1}, "q9": {"d1": 1}}
    results, topics, judged = frames(RUN, qrels)
    measures = [nDCG @ 10, *er.bind([ARaB @ 2], tally=tally)]
    table = pt.Experiment([results], topics, judged, measures, names=["run"])
    found = [table[str(m)].item() for m in measures]
    assert found == pytest.approx(values(tally, qrels=qrels, measures=[nDCG @ 10, ARaB @ 2]))


@pytest.mark.filterwarnings("ignore")
def test_an_experiment_with_transformers_and_a_baseline(pt: Any, shared: Path) -> None:
    docs, queries, qrels = er.load(shared / "data" / "time")
    tally = er.tally(docs)
    measures = [ARaB @ 10, nDCG @ 10, NFaiRR @ 10]
    paths = {name: shared / "runs" / f"time.{name}.run" for name in ("bm25", "qld")}
    background = paths["bm25"]
    results = {
        name: pd.DataFrame(ir_measures.read_trec_run(str(path))).rename(
            columns={"query_id": "qid", "doc_id": "docno"}
        )
        for name, path in paths.items()
    }
    topics = queries.to_pandas().rename(columns={"query_id": "qid", "text": "query"})
    judged = qrels.to_pandas().rename(columns={"query_id": "qid", "doc_id": "docno", "relevance": "label"})
    bound = er.bind(measures, tally=tally, background=background)
    systems = [pt.Transformer.from_df(frame) for frame in results.values()]
    table = pt.Experiment(systems, topics, judged, bound, names=list(results), baseline=0).set_index("name")
    expected = er.measure(paths, measures, tally=tally, qrels=qrels, background=background, confidence=None)
    for name in paths:
        for measure, one in zip(measures, bound, strict=True):
            assert table.loc[name, str(one)] == pytest.approx(expected[name, measure].value)
