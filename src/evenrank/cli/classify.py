"""`evenrank classify` and `evenrank classify-train`: which gender queries are about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenrank.cli.common import deliver, note, progress_bar
from evenrank.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from evenrank.queries.classifier import Classifier


def classify_command(
    queries: Annotated[
        str, typer.Argument(metavar="QUERIES", help="query_id<TAB>text, JSONL, TREC topics or Parquet.")
    ],
    model: Annotated[
        str, typer.Option(metavar="NAME|DIR", help="static, lexicon, or the folder of a trained model.")
    ] = "static",
    min_confidence: Annotated[
        float | None,
        typer.Option(min=0, max=1, metavar="P", help="Label `unknown` where the probability is lower."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Add a column with the words that drove each label.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write there, not to stdout.")
    ] = None,
) -> None:
    """Say which gender each query is about: female, male or neutral, with probabilities.

    Out comes TSV with a header: query_id, text, label, female, male, neutral, note; and reasons with
    --explain. The note says where a query is empty, was cut after 1,000 characters, or was part of the
    training data, so that its label is no evidence.

        evenrank classify queries.tsv --min-confidence 0.8 -o genders.tsv
    """
    from evenrank.queries.classifier import classify

    with progress_bar("labelling", unit="queries") as progress:
        found = classify(queries, model, min_confidence=min_confidence, explain=explain, progress=progress)
    deliver(_tsv(found), output)
    counts = found["label"].value_counts(sort=True).iter_rows()
    note(f"{len(found):,} queries: " + ", ".join(f"{number:,} {label}" for label, number in counts))
    for what, meaning in (
        ("training query", "were part of the training data; leave them out of an audit"),
        ("empty", "hold no word; labelled neutral"),
        ("truncated", "were cut after 1,000 characters"),
    ):
        if count := int(found["note"].str.contains(what, literal=True).sum()):
            note(f"{count:,} queries {meaning}")


def classify_train_command(
    data: Annotated[str, typer.Argument(metavar="DATA", help="query_id<TAB>text<TAB>label.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Where the model goes.")],
    model: Annotated[
        str, typer.Option(metavar="NAME", help="static, lexicon, svm or transformer.")
    ] = "static",
    vectors: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Word vectors; may be repeated, and should be given."),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|DIR", help="Encoder to fine-tune; for transformer.", show_default="MiniLM"
        ),
    ] = None,
    swaps: Annotated[
        float,
        typer.Option(min=0, help="Weight of each query with its gender swapped; for transformer 0 or 1."),
    ] = 0.0,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="PART", help="Leave out names, lexicon, terms, letters, …"),
    ] = None,
    cv: Annotated[int, typer.Option(min=0, help="Folds of the cross-validation; 0 for none.")] = 5,
    seeds: Annotated[int, typer.Option(min=1, help="How often it is repeated.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the training.")] = 0,
) -> None:
    """Train a classifier on labelled queries, and say how good it is on queries it has not seen.

    The model is a folder: model.json, arrays, and a card (card.json, card.md) with the numbers. Queries
    labelled other or multiple are left out. Only hashes of the training queries are kept.

        evenrank classify-train annotated.tsv --vectors glove.bin.gz --cv 5 -o my-model
    """
    from evenrank.queries.crossvalidation import crossvalidate
    from evenrank.queries.labelled import read_labelled
    from evenrank.queries.model_card import write_card

    queries = read_labelled(data)
    make = _maker(model, vectors or [], swaps, without or [], checkpoint)
    if queries.left_out:
        note(f"{queries.left_out:,} queries left out: empty, or of other or multiple genders")
    found = None
    if cv:
        with progress_bar("cross-validating", unit="folds") as progress:
            found = crossvalidate(
                make, queries.texts, queries.labels, folds=cv, seeds=range(seeds), progress=progress
            )
        low, high = found.accuracy.low, found.accuracy.high
        interval = "" if low is None or high is None else f" [{low:.3f}, {high:.3f}]"
        scores = ", ".join(f"{label} {score:.3f}" for label, score in found.f1.items())
        note(f"accuracy {found.accuracy.value:.3f}{interval}; F1 {scores}; calibration error {found.ece:.3f}")
    with progress_bar("training", unit="steps") as progress:
        trained = make().fit(queries.texts, queries.labels, seed=seed, progress=progress)
    trained.save(output)
    write_card(output, trained, found, left_out=queries.left_out)
    note(f"{len(queries.texts):,} queries learned; the model is in {output}")


class _Make:
    """Fresh classifiers of one kind and with one set of settings."""

    def __init__(self, name: str, **settings: object) -> None:
        from evenrank.queries.classifier import kind_of

        self.kind, self.settings = kind_of(name), settings

    def __call__(self) -> Classifier:
        return self.kind(**self.settings)


def _maker(name: str, vectors: list[str], swaps: float, without: list[str], checkpoint: str | None) -> _Make:
    from evenrank.queries.classifier import kind_of

    kind_of(name)  # an unknown name is refused before anything else
    if checkpoint is not None and name != "transformer":
        raise InputError("--checkpoint goes with --model transformer")
    if name == "lexicon":
        if vectors or swaps or without:
            raise InputError("--vectors, --swaps and --without go with --model static or transformer")
        return _Make(name)
    if not vectors:
        note("no --vectors: the model will know less about words that no training query has")
    if name == "svm":
        if swaps or without:
            raise InputError("--swaps and --without go with --model static or transformer")
        return _Make(name, vectors=tuple(vectors))
    if name == "transformer":
        if swaps not in (0, 1):
            raise InputError(f"--swaps {swaps:g}: a transformer learns from swapped queries (1) or not (0)")
        _choose(without, ("names", "lexicon"))
        return _Make(
            name,
            checkpoint=checkpoint,
            vectors=tuple(vectors),
            names="names" not in without,
            lexicon_words="lexicon" not in without,
            swaps=swaps > 0,
        )
    from evenrank.queries.static_classifier import StaticSettings
    from evenrank.vectors import load

    settings = StaticSettings()
    _choose(without, settings.parts)
    parts = tuple(part for part in settings.parts if part not in without)
    settings = StaticSettings(parts=parts, swaps=swaps)
    return _Make(name, settings=settings, vectors=tuple(load(path) for path in vectors))


def _choose(without: list[str], parts: tuple[str, ...]) -> None:
    if unknown := set(without) - set(parts):
        raise InputError(f"--without {sorted(unknown)[0]}: choose from {', '.join(parts)}")


def _tsv(found: pl.DataFrame) -> str:
    """A line for each query; blanks within a text are made plain, so that a line stays a line."""
    import polars as pl

    columns = [
        pl.col("query_id"),
        pl.col("text").str.replace_all(r"\s+", " ").str.strip_chars(),
        pl.col("label"),
        *(pl.col(name).round(4) for name in ("female", "male", "neutral")),
        pl.col("note"),
    ]
    if "reasons" in found.columns:
        reason = pl.format(
            "{} ({} {})",
            pl.element().struct.field("word"),
            pl.element().struct.field("group"),
            pl.element().struct.field("weight").round(2),
        )
        columns.append(pl.col("reasons").list.eval(reason).list.join(", "))
    return found.select(columns).write_csv(separator="\t", quote_style="never", float_precision=4)


def genders_or_predicted(genders: str | None, queries: str | None) -> pl.DataFrame | str | None:
    """What `--genders` names; for `predict` the labels of the shipped static classifier.

    Queries that it was trained on get no label: a classifier is not evidence about what it was told.
    """
    if genders != "predict":
        return genders
    if queries is None:
        raise InputError("--genders predict reads the queries' texts; give --queries")
    from evenrank.queries.classifier import classify

    found = classify(queries)
    seen = found["note"].str.contains("training query", literal=True)
    if seen.any():
        note(f"{int(seen.sum()):,} queries get no predicted gender: the classifier was trained on them")
    if seen.all():
        raise InputError("the classifier was trained on all of these queries; give labels as --genders FILE")
    return found.filter(~seen).select("query_id", gender="label")
