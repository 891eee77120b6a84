"""`evenrank vectors …`: word vectors, their gender direction, stereotypes in them, and removing it."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenrank.cli.common import deliver, note, progress_bar, split_names

if TYPE_CHECKING:
    from evenrank.vectors import Vectors

app = typer.Typer(
    name="vectors",
    help="Word vectors: load, train, distil; the gender direction, stereotypes, debiasing.",
    no_args_is_help=True,
)


class Format(StrEnum):
    table = "table"
    json = "json"


class Duplicates(StrEnum):
    error = "error"
    first = "first"


class Training(StrEnum):
    word2vec = "word2vec"
    fasttext = "fasttext"


class Debiasing(StrEnum):
    hard = "hard"
    strong = "strong"
    leace = "leace"


Source = Annotated[
    str,
    typer.Argument(
        metavar="VECTORS", help="word2vec, GloVe, fastText .vec, .npz (all may be .gz) or .arrow."
    ),
]
Output = Annotated[
    Path,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Where to write: .arrow (opens at once), .bin, .txt, .vec or .npz; text and binary also .gz.",
    ),
]
Form = Annotated[Format, typer.Option("--format", help="How to print the result.")]
PairsFile = Annotated[
    str | None,
    typer.Option(
        "--pairs",
        metavar="FILE",
        help="Pairs of words, one per line, for any direction.",
        show_default="ten of gender",
    ),
]


@app.command("load")
def load_command(
    vectors: Source,
    output: Output,
    duplicates: Annotated[
        Duplicates, typer.Option(help="If a word occurs twice: stop, or keep its first vector.")
    ] = Duplicates.error,
) -> None:
    """Read vectors in any format, check them, scale them to length 1, and write them.

    Written as .arrow they open in milliseconds the next time, and remember where they came from.
    """
    from evenrank.vectors import load

    with _noted():
        loaded = load(vectors, duplicates=duplicates.value)
    _save(loaded, output)


@app.command("info")
def info_command(vectors: Source, form: Form = Format.table) -> None:
    """Show what a file of vectors holds and where it comes from."""
    from evenrank.vectors import load

    with _noted():
        loaded = load(vectors)
    content = {
        "words": len(loaded),
        "dimension": loaded.dimension,
        "cased": any(word != word.lower() for word in loaded.words),
        "first": loaded.words[:10],
        "provenance": loaded.provenance,
    }
    if form is Format.json:
        _json(content)
        return
    rows = [(key, _plain(value)) for key, value in content.items() if key != "provenance"]
    rows += [(key, _plain(value)) for key, value in loaded.provenance.items()]
    _table(("", ""), rows)


@app.command("train")
def train_command(
    docs: Annotated[str, typer.Argument(metavar="DOCS", help="TSV, JSONL or Parquet file, or irds:ID.")],
    output: Output,
    method: Annotated[
        Training, typer.Option(help="Skip-gram on words, or on their parts too.")
    ] = Training.word2vec,
    dimension: Annotated[int, typer.Option(min=1, help="Length of a vector.")] = 100,
    window: Annotated[int, typer.Option(min=1, help="Words to either side that count as context.")] = 5,
    min_count: Annotated[int, typer.Option(min=1, help="Rarer words get no vector.")] = 5,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the collection.")] = 5,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the random numbers; the same seed gives the same vectors.")
    ] = 0,
    fields: Annotated[str, typer.Option(help="Fields that make up the text.")] = "title,text",
    id_field: Annotated[
        str | None, typer.Option(help="Field of the document id.", show_default="doc_id, docno, id, …")
    ] = None,
) -> None:
    """Train vectors on a collection of your own (gensim; one thread, so that it can be repeated)."""
    from evenrank.data.docs import open_docs
    from evenrank.vectors import train

    source = open_docs(docs, fields=split_names(fields), id_field=id_field)
    with progress_bar("training", unit="bytes") as progress:
        built = train(
            source,
            method=method.value,
            dimension=dimension,
            window=window,
            min_count=min_count,
            epochs=epochs,
            seed=seed,
            progress=progress,
        )
    _save(built, output)


@app.command("distil")
def distil_command(
    output: Output,
    like: Annotated[
        str | None, typer.Option(metavar="VECTORS", help="Encode the words of these vectors.")
    ] = None,
    docs: Annotated[
        str | None, typer.Option(metavar="DOCS", help="Encode the words of a collection.")
    ] = None,
    words: Annotated[
        str | None, typer.Option(metavar="FILE", help="Encode these words, one per line.")
    ] = None,
    min_count: Annotated[int, typer.Option(min=1, help="With --docs: leave out rarer words.")] = 5,
    model: Annotated[
        str | None,
        typer.Option(help="A sentence-transformer: folder or name.", show_default="offline MiniLM"),
    ] = None,
) -> None:
    """Encode each word of a vocabulary with a sentence-transformer: static vectors from a language model."""
    from evenrank.errors import InputError
    from evenrank.vectors import distil, load, read_words, vocabulary

    if sum(given is not None for given in (like, docs, words)) != 1:
        raise InputError("say which words to encode, in one way: --like, --docs or --words")
    if like is not None:
        chosen = load(like).words
    elif docs is not None:
        with progress_bar("reading", unit="bytes") as progress:
            chosen = vocabulary(docs, min_count=min_count, progress=progress)
    else:
        chosen = read_words(str(words))
    with progress_bar("encoding words", unit="words") as progress:
        built = distil(chosen, model=model, progress=progress)
    _save(built, output)


@app.command("direction")
def direction_command(
    vectors: Source,
    pairs: PairsFile = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write how far each word leans: .parquet."),
    ] = None,
    top: Annotated[int, typer.Option(min=0, help="How many of the words that lean most to show.")] = 10,
    form: Form = Format.table,
) -> None:
    """Find the gender direction, or any other, and how far each word leans along it.

    The table (word, g) that -o writes can replace the vectors wherever genderedness is needed; the one that
    ships with evenrank was made this way.
    """
    from evenrank.vectors import find_direction, genderedness, leaning, load

    with _noted():
        loaded = load(vectors)
        result = find_direction(loaded, pairs)
    if output is not None:
        from evenrank.errors import InputError

        if output.suffix.lower() != ".parquet":
            raise InputError("the table of genderedness is a .parquet file", path=output)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said above
            genderedness(loaded, pairs=pairs).write(output)
        note(f"{len(loaded):,} words: {output}")
    ends = leaning(loaded, result, top)
    if form is Format.json:
        sides = zip(("positive", "negative"), ends, strict=True)
        most = {side: [{"word": word, "g": g} for word, g in end] for side, end in sides}
        known = {"words": len(loaded), "positive": _positive(pairs, result), **result.to_dict()}
        _json({**known, "leaning": most, "provenance": loaded.provenance})
        return
    used = ", ".join(f"{first}–{second}" for first, second in result.pairs)
    shares = ", ".join(f"{share:.1%}" for share in result.explained)
    _table(("", ""), [("pairs", used), ("variance explained", shares)])
    first, second = result.pairs[0]
    _table(("", ""), [("g", f"cosine with the direction; positive is toward {second}")])
    rows = [(a, f"{-g:+.3f}", b, f"{-h:+.3f}") for (a, g), (b, h) in zip(*ends, strict=True)]
    _table((f"toward {first}", "g", f"toward {second}", "g"), rows)


@app.command("debias")
def debias_command(
    vectors: Source,
    output: Output,
    method: Annotated[
        Debiasing,
        typer.Option(
            help="hard: all but gender-specific words; strong: all; leace: all, several dimensions."
        ),
    ] = Debiasing.hard,
    pairs: PairsFile = None,
    specific: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Gender-specific words, one per line.", show_default="shipped lexicons"
        ),
    ] = None,
    grow: Annotated[
        bool, typer.Option("--grow", help="Let a linear SVM add words that look gender-specific.")
    ] = False,
    equalise: Annotated[
        str | None, typer.Option(metavar="FILE", help="Pairs to make symmetric, with --method hard.")
    ] = None,
    words: Annotated[
        int,
        typer.Option(min=0, help="How many of the most biased words of each side to test; 0 for no test."),
    ] = 500,
    seed: Annotated[int, typer.Option(min=0, help="Of the test.")] = 0,
    form: Form = Format.table,
) -> None:
    """Remove gender from vectors, and test how much of it can still be recovered.

    The test asks whether clustering and classifiers can still tell the most biased words apart: 1 means
    always, 0.5 means no better than chance.
    """
    from evenrank.vectors import debiased, find_direction, load, recoverability

    with _noted():
        loaded = load(vectors)
        result = find_direction(loaded, pairs)
        given: dict[str, Any] = {
            "direction": result,
            "specific": specific,
            "grow": grow,
            "equalise": equalise,
        }
        built = debiased(loaded, method.value, **given)
    _save(built, output)
    facts = built.provenance["debiased"]
    content: dict[str, Any] = {
        "method": method.value,
        **{k: facts[k] for k in facts if k not in ("specific", "method")},
    }
    if words:

        def without(held_out: Any) -> Vectors:
            return debiased(loaded, "leace", **{**given, "held_out": held_out})

        test = {"direction": result, "words": words, "specific": facts.get("specific"), "seed": seed}
        after = without if method is Debiasing.leace else built
        content["before"] = recoverability(loaded, loaded, **test).to_dict()
        content["after"] = recoverability(loaded, after, **test).to_dict()
    if form is Format.json:
        _json(content)
    elif words:
        kinds = ("clustering", "linear", "kernel", "neighbours")
        rows = [
            (kind, _interval(content["before"][kind]), _interval(content["after"][kind])) for kind in kinds
        ]
        _table(("", "before", "after"), rows)


@app.command("associations")
def associations_command(
    vectors: Annotated[
        str | None,
        typer.Argument(
            metavar="[VECTORS]", help="Vectors, or a table of genderedness.", show_default="the shipped table"
        ),
    ] = None,
    pairs: PairsFile = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the draws if there are too many to enumerate.")
    ] = 0,
    form: Form = Format.table,
) -> None:
    """Test for stereotypes: agency–communion, science–arts, career–family, male and female jobs.

    Shows the mean lean of both sets of words, positive toward male, and their difference, male − female,
    which is positive if the vectors hold the stereotype. Then the one-sided permutation p, and the p that
    Fabris et al. (2020) published for Google-News vectors. In JSON, as in the paper, means are positive
    toward female.
    """
    from evenrank.vectors import association_tests

    with _noted():
        result = association_tests(vectors, pairs=pairs, seed=seed)
    if form is Format.json:
        side = "female" if pairs is None else "first words of the pairs"
        _json({"positive": side, "associations": [each.to_dict() for each in result]})
        return
    rows = [
        (
            each.name,
            f"{-each.male:+.3f}",
            f"{-each.female:+.3f}",
            _interval({"value": each.difference, "low": each.low, "high": each.high}, "+.3f"),
            "–" if each.effect is None else f"{each.effect:.2f}",
            "–" if each.p is None else f"{each.p:.2g}",
            "–" if each.published is None else f"{each.published:.2g}",
        )
        for each in result
    ]
    _table(("", "male words", "female words", "difference", "effect", "p", "published p"), rows)
    side = "male" if pairs is None else "the second words of the pairs"
    note(f"means: positive leans toward {side}; difference: of male and female words")
    for each in result:
        if each.missing:
            note(f"{each.name}: without a vector, left out: {', '.join(each.missing)}")


def _positive(pairs: str | None, found: Any) -> str:
    """The side on which g is positive in JSON and in tables of genderedness."""
    return "female" if pairs is None else found.pairs[0][0]


def _save(vectors: Vectors, output: Path) -> None:
    from evenrank.vectors import save

    save(vectors, output)
    note(f"{len(vectors):,} words, {vectors.dimension} dimensions: {output}")


@contextmanager
def _noted() -> Iterator[None]:
    """Warnings as one line each on stderr."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for warning in caught:
        note(f"warning: {warning.message}")


def _json(content: Any) -> None:
    deliver(json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False), None)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return " ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _interval(found: dict[str, Any], form: str = ".3f") -> str:
    if found["value"] is None:
        return "–"
    value = format(found["value"], form)
    return value if found["low"] is None else f"{value} [{found['low']:{form}}, {found['high']:{form}}]"


def _table(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from evenrank.cli.rendering import Plain

    grid = Table(box=None, header_style="bold", pad_edge=False, show_header=any(headings))
    for number, heading in enumerate(headings):
        numeric = number > 0 and bool(rows) and rows[0][number][:1] in "+-–0123456789"
        grid.add_column(
            heading, justify="right" if numeric and len(headings) > 2 else "left", overflow="fold"
        )
    for row in rows:
        grid.add_row(*map(Text, row))
    console = Console(width=None if sys.stdout.isatty() else 160, markup=False, emoji=False)
    console.push_render_hook(Plain())
    console.print(grid)
