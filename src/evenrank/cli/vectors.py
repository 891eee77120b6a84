"""`evenrank vectors …`: the gender direction of word vectors, stereotypes in them, and removing gender."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from evenrank.cli.common import Format, deliver, note
from evenrank.cli.options import Form

app = typer.Typer(
    name="vectors",
    help="Word vectors: the gender direction, stereotypes, debiasing.",
    no_args_is_help=True,
)


class Method(StrEnum):
    hard = "hard"
    strong = "strong"
    leace = "leace"


Source = Annotated[
    str,
    typer.Argument(metavar="VECTORS", help="word2vec, GloVe or fastText .vec; all may be .gz."),
]
Pairs = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Pairs of words, one per line, for any direction.", show_default="ten of gender"
    ),
]


@app.command("direction")
def direction_command(
    vectors: Source,
    pairs: Pairs = None,
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
    from evenrank.errors import InputError
    from evenrank.vectors import find_direction, leaning, load
    from evenrank.vectors.gendered import genderedness_along

    loaded = load(vectors)
    direction = find_direction(loaded, pairs)
    if output is not None:
        if output.suffix.lower() != ".parquet":
            raise InputError("the table of genderedness is a .parquet file", path=output)
        genderedness_along(loaded, direction).write(output)
        note(f"{len(loaded):,} words: {output}")
    ends = leaning(loaded, direction, top)
    sides = direction.pairs[0]
    rows = [(side, word, f"{-g:+.3f}") for side, end in zip(sides, ends, strict=True) for word, g in end]
    content = {
        "words": len(loaded),
        "positive": "female" if pairs is None else sides[0],
        **direction.to_dict(),
        "leaning": {
            side: [{"word": word, "g": g} for word, g in end]
            for side, end in zip(("positive", "negative"), ends, strict=True)
        },
        "provenance": loaded.provenance,
    }
    _print(
        form,
        content,
        ("toward", "word", "g"),
        rows,
        f"g: cosine with the direction; positive is toward {sides[1]}",
        f"variance explained: {', '.join(f'{share:.1%}' for share in direction.explained)}",
        f"pairs: {', '.join(f'{a}–{b}' for a, b in direction.pairs)}",
        left=2,
    )


@app.command("debias")
def debias_command(
    vectors: Source,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Where to write: .bin, .txt or .vec; all may be .gz.",
        ),
    ],
    method: Annotated[
        Method,
        typer.Option(
            help="hard: all but gender-specific words; strong: all; leace: all, several dimensions."
        ),
    ] = Method.hard,
    pairs: Pairs = None,
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
    from evenrank.vectors import debiased, find_direction, load, recoverability, save

    loaded = load(vectors)
    direction = find_direction(loaded, pairs)

    def debias(held_out: Collection[str] = ()) -> Any:
        return debiased(
            loaded,
            method.value,
            direction=direction,
            specific=specific,
            grow=grow,
            equalise=equalise,
            held_out=held_out,
        )

    built = debias()
    save(built, output)
    note(f"{len(built):,} words, {built.dimension} dimensions: {output}")
    content = {key: value for key, value in built.provenance["debiased"].items() if key != "specific"}
    rows = []
    if words:
        test = {
            "direction": direction,
            "words": words,
            "specific": built.provenance["debiased"].get("specific"),
            "seed": seed,
        }
        before = recoverability(loaded, loaded, **test)
        after = recoverability(loaded, debias if method is Method.leace else built, **test)
        content |= {"before": before.to_dict(), "after": after.to_dict()}
        rows = [
            (kind, _interval(getattr(before, kind)), _interval(getattr(after, kind)))
            for kind in ("clustering", "linear", "kernel", "neighbours")
        ]
    if words or form is Format.json:
        _print(form, content, ("", "before", "after"), rows)


@app.command("associations")
def associations_command(
    vectors: Annotated[
        str | None,
        typer.Argument(
            metavar="[VECTORS]", help="Vectors, or a table of genderedness.", show_default="the shipped table"
        ),
    ] = None,
    pairs: Pairs = None,
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
    from evenrank.show.numbers import number, signed
    from evenrank.vectors import association_tests

    tests = association_tests(vectors, pairs=pairs, seed=seed)
    rows = [
        (
            test.name,
            signed(-test.male),
            signed(-test.female),
            _interval(test, "+.3f"),
            number(test.effect, ".2f"),
            "–" if test.p is None else f"{test.p:.2g}",
            "–" if test.published is None else f"{test.published:.2g}",
        )
        for test in tests
    ]
    sides = ("female", "male")
    if pairs is not None:
        sides = ("first words of the pairs", "the second words of the pairs")
    _print(
        form,
        {"positive": sides[0], "associations": [test.to_dict() for test in tests]},
        ("", "male words", "female words", "difference", "effect", "p", "published p"),
        rows,
        f"means: positive leans toward {sides[1]}; difference: of male and female words",
        *(f"{t.name}: without a vector, left out: {', '.join(t.missing)}" for t in tests if t.missing),
    )


def _interval(found: Any, form: str = ".3f") -> str:
    """A value with its interval; associations call the value a difference."""
    from evenrank.show.numbers import interval, number

    value = found.difference if hasattr(found, "difference") else found.value
    return f"{number(value, form)} {interval(found.low, found.high, form)}".rstrip()


def _print(
    form: Format,
    content: dict[str, Any],
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *remarks: str,
    left: int = 1,
) -> None:
    from evenrank.cli.rendering import render_grid
    from evenrank.show.grid import Grid

    if form is Format.json:
        text = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False)
    elif form is Format.csv:
        text = Grid(headings, rows, left).csv()
    else:
        text = render_grid(form, headings, rows, remarks=remarks, left=left)
    deliver(text, None)
