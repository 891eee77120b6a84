"""`evenrank classify` and `evenrank classify-train`: which gender queries are about."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenrank.cli.common import deliver, note, progress_bar
from evenrank.errors import InputError
from evenrank.show.numbers import counted

if TYPE_CHECKING:
    import polars as pl

    from evenrank.queries.classifier import Classifier
    from evenrank.queries.samples import More


def classify_command(
    queries: Annotated[
        str, typer.Argument(metavar="QUERIES", help="TSV (query_id, text), JSONL, TREC topics or Parquet.")
    ],
    model: Annotated[
        str, typer.Option(metavar="NAME|DIR", help="static, lexicon, or the folder of a trained model.")
    ] = "static",
    min_confidence: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            metavar="P",
            help="Label a query `unknown` if no probability is this high.",
            show_default="the model's own",
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Add a column with the words that drove each label.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write to this file instead of stdout."),
    ] = None,
) -> None:
    """Say which gender each query is about: female, male, neutral or unknown, with probabilities.

    A job, a hobby, a product or a field names no gender; people's names and gendered words do.

    Prints TSV with a header: query_id, text, label, female, male, neutral, note; and reasons with
    --explain. The note says if a query is empty, was cut after 1,000 characters, or was part of the
    training data, which makes its label no evidence.

        evenrank classify queries.tsv --min-confidence 0.8 -o genders.tsv
    """
    from evenrank.queries.classifier import classify, counted_labels

    with progress_bar("labelling", unit="queries") as progress:
        result = classify(queries, model, min_confidence=min_confidence, explain=explain, progress=progress)
    deliver(_tsv(result), output)
    note(f"{counted(len(result), 'query', 'queries')}: {counted_labels(result)}")
    for what, meaning in (
        ("training query", "of the training data; leave them out of an audit"),
        ("empty", "without a word; labelled neutral"),
        ("truncated", "cut after 1,000 characters"),
    ):
        if count := int(result["note"].str.contains(what, literal=True).sum()):
            note(f"{counted(count, 'query', 'queries')} {meaning}")


def classify_train_command(
    data: Annotated[str, typer.Argument(metavar="DATA", help="TSV: query_id, text, label.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Folder for the model.")],
    model: Annotated[
        str, typer.Option(metavar="NAME", help="static, lexicon, svm or transformer.")
    ] = "static",
    vectors: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Word vectors; recommended. Repeatable."),
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
        typer.Option(metavar="PART", help="Leave out names, lexicon, terms, plain, letters, …"),
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="More labelled queries to learn from; never measured on."),
    ] = None,
    neutral: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="Texts, one per line; those that name nobody are learned as neutral."
        ),
    ] = None,
    unlabelled: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Queries without labels, one per line; an encoder (MiniLM) guesses the labels; for static.",
        ),
    ] = None,
    neutral_share: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Expected share of neutral queries, such as 0.85 for a query log.",
            show_default="that of DATA",
        ),
    ] = None,
    cv: Annotated[int, typer.Option(min=0, help="Folds of the cross-validation; 0 for none.")] = 5,
    seeds: Annotated[int, typer.Option(min=1, help="How often the cross-validation is repeated.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the training.")] = 0,
) -> None:
    """Train a classifier on labelled queries, and report how good it is on queries it has not seen.

    The model is a folder: model.json, arrays, and a card (card.json, card.md) with the numbers. Queries
    labelled other or multiple are left out. Only hashes of the training queries are kept. The order of the
    rows makes no difference. Cross-validation uses exactly these settings, including --neutral-share.

        evenrank classify-train annotated.tsv --vectors glove.bin.gz --cv 5 -o my-model
    """
    from evenrank.queries.evaluation import crossvalidate, read_labelled, write_card

    queries = read_labelled(data)
    more = _more(model, also or [], neutral or [], unlabelled or [])
    make = _maker(model, vectors or [], swaps, without or [], checkpoint, more)
    make = _for_log(make, neutral_share)  # what is asked for is refused before anything is trained
    if queries.left_out:
        left_out = counted(queries.left_out, "query", "queries")
        note(f"{left_out} left out: empty, or of other or multiple genders")
    result = None
    if cv:
        with progress_bar("cross-validating", unit="folds") as progress:
            result = crossvalidate(
                make, queries.texts, queries.labels, folds=cv, seeds=range(seeds), progress=progress
            )
        low, high = result.accuracy.low, result.accuracy.high
        interval = "" if low is None or high is None else f" [{low:.3f}, {high:.3f}]"
        scores = ", ".join(f"{label} {score:.3f}" for label, score in result.f1.items())
        note(
            f"accuracy {result.accuracy.value:.3f}{interval}, unknown counted as wrong; "
            f"{result.coverage:.1%} labelled; F1 {scores}; calibration error {result.ece:.3f}"
        )
    with progress_bar("training", unit="steps") as progress:
        trained = make().fit(queries.texts, queries.labels, seed=seed, progress=progress)
    trained.save(output)
    write_card(output, trained, result, left_out=queries.left_out)
    learned = len(queries.texts) + (sum(more.describe().values()) if more else 0)
    note(f"{counted(learned, 'query', 'queries')} learned; the model is in {output}")


def _more(model: str, also: list[str], neutral: list[str], unlabelled: list[str]) -> More | None:
    """What `--also`, `--neutral` and `--unlabelled` name; None where none is given."""
    if not also and not neutral and not unlabelled:
        return None
    if model not in ("static", "transformer"):
        raise InputError("--also and --neutral go with --model static or transformer")
    if unlabelled and model != "static":
        raise InputError("--unlabelled goes with --model static")
    from evenrank.data.formats import text_lines
    from evenrank.queries.classifier import clean
    from evenrank.queries.evaluation import read_labelled
    from evenrank.queries.samples import More, Samples, names_nobody

    def texts(paths: list[str]) -> list[str]:
        result = (clean(line) for path in paths for _, line in text_lines(Path(path), remark=None))
        return [text for text in result if text]

    labelled = Samples([], [])
    for path in also:
        read = read_labelled(path)
        labelled.texts.extend(read.texts)
        labelled.labels.extend(read.labels)
    plain = texts(neutral)
    nobody = sorted({text for text in plain if names_nobody(text)})
    if neutral:
        named = len(plain) - len(nobody)
        note(f"{len(nobody):,} texts learned as neutral; {named:,} name somebody or are repeated")
    return More(labelled, tuple(nobody), tuple(sorted(set(texts(unlabelled)))))


class _Make:
    """Fresh classifiers of one kind and with one set of settings."""

    def __init__(self, name: str, **settings: object) -> None:
        from evenrank.queries.classifier import kind_of

        self.name, self.kind, self.settings = name, kind_of(name), settings

    def __call__(self) -> Classifier:
        return self.kind(**self.settings)


def _maker(
    name: str,
    vectors: list[str],
    swaps: float,
    without: list[str],
    checkpoint: str | None,
    more: More | None,
) -> _Make:
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
        _choose(without, ("names", "lexicon", "plain"))
        return _Make(
            name,
            checkpoint=checkpoint,
            vectors=tuple(vectors),
            names="names" not in without,
            lexicon_words="lexicon" not in without,
            **({"plain_samples": 0} if "plain" in without else {}),
            more=more,
            swaps=swaps > 0,
        )
    from evenrank.queries.static_classifier import StaticSettings
    from evenrank.queries.teaching import Encoder
    from evenrank.vectors import load

    settings = StaticSettings()
    _choose(without, (*settings.parts, "plain"))
    parts = tuple(part for part in settings.parts if part not in without)
    plain = 0.0 if "plain" in without else settings.plain_samples
    settings = StaticSettings(parts=parts, swaps=swaps, plain_samples=plain)
    opened = tuple(load(path) for path in vectors)
    return _Make(name, settings=settings, vectors=opened, more=more, encoder=Encoder())


def _for_log(make: _Make, neutral_share: float | None) -> _Make:
    """The same classifiers, told how many of the queries to come are neutral."""
    if neutral_share is None:
        return make
    if make.name == "transformer":
        return _Make(make.name, **{**make.settings, "neutral_share": neutral_share})
    from evenrank.queries.static_classifier import StaticSettings

    settings = make.settings.get("settings")
    if not isinstance(settings, StaticSettings):
        raise InputError("--neutral-share goes with --model static or transformer")
    changed = replace(settings, neutral_share=neutral_share)
    return _Make(make.name, **{**make.settings, "settings": changed})


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
