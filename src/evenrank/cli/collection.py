"""What is done with a collection: colouring it (and with which words), indexing it, searching it.

`evenrank tally`, `evenrank lexicons`, `evenrank index` and `evenrank search`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenrank.cli import options
from evenrank.cli.common import Tokenizer, deliver, note, progress_bar, refuse_place, split_names
from evenrank.errors import InputError
from evenrank.parallel import set_threads

if TYPE_CHECKING:
    import polars as pl

    from evenrank.cli.options import GivenInputs


Collections = Annotated[
    list[str],
    typer.Argument(metavar="DOCS", help="TSV, JSONL or Parquet, or irds:ID; several with Spark."),
]
Collection = Annotated[str, typer.Argument(metavar="DOCS", help="TSV, JSONL or Parquet file, or irds:ID.")]
Fields = Annotated[str, typer.Option(help="Fields that make up the text, joined with a space.")]


class Form(StrEnum):
    table = "table"
    json = "json"


def tally_command(
    docs: Collections,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="The tally, a Parquet file.")],
    lexicon: Annotated[str, typer.Option(help="Words of each group: a name or a file.")] = "rekabsaz2020",
    tokenizer: Annotated[
        Tokenizer, typer.Option(help="How text becomes words; whitespace repeats published numbers.")
    ] = Tokenizer.words,
    fields: Fields = "title,text",
    id_field: options.IdField = None,
    engine: options.WhichEngine = options.Engine.here,
    master: options.Master = None,
    threads: options.Threads = None,
) -> None:
    """Count the words of each group in every document of a collection, to be reused.

    The result holds doc_id, tokens, a count and a log-count for each group, and how it was made; `measure`
    takes it with --tally. A large collection is streamed. With --engine spark, Spark's workers tally
    anything that Spark reads; if FILE is an address (s3a://…), it becomes a folder of Parquet files there.
    """
    from evenrank.data.docs import open_docs
    from evenrank.text.tally import tally_to_file

    options.check_engine(engine, master)
    if engine is options.Engine.spark:
        if threads is not None:
            raise InputError("--threads is for this machine; Spark's master says how many work: local[2]")
        from evenrank.spark import session, tally_files

        how: Any = {"tokenizer": tokenizer.value, "fields": split_names(fields), "id_field": id_field}
        count = tally_files(session(master), docs, output, lexicon, **how)
        note(f"{count:,} documents, lexicon {lexicon}, tokenizer {tokenizer.value}: {output}")
        return
    if len(docs) > 1:
        raise InputError("name one collection; several files at once are for --engine spark")
    source = open_docs(docs[0], fields=split_names(fields), id_field=id_field)
    set_threads(threads)
    with progress_bar("counting", unit="bytes") as progress:
        built = tally_to_file(source, output, lexicon, tokenizer=tokenizer.value, progress=progress)
    how = f"lexicon {built['lexicon']['name']}, tokenizer {built['tokenizer']}"
    note(f"{built['documents']:,} documents, {how}: {output}")


def lexicons_command(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A shipped lexicon or a file; without it, all.")
    ] = None,
    form: Annotated[Form, typer.Option("--format", help="How to print them.")] = Form.table,
) -> None:
    """List the lexicons that ship with evenrank, or show the words of one."""
    import json

    from evenrank.text.lexicon import lexicon, shipped

    chosen = [lexicon(each) for each in ([name] if name else shipped())]
    if form is Form.json:
        content = [{**each.to_dict(), "hash": each.hash} for each in chosen]
        deliver(json.dumps(content[0] if name else content, ensure_ascii=False, indent=2), None)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from evenrank.cli.rendering import Plain

    console = Console(highlight=False, markup=False, emoji=False)
    console.push_render_hook(Plain())
    if name is None:
        table = Table(box=None, header_style="bold")
        for heading in ("name", "language", "words", "source"):
            table.add_column(heading)
        for each in chosen:
            words = ", ".join(f"{len(entries)} {group}" for group, entries in each.groups.items())
            mark = " (experimental)" if each.experimental else ""
            table.add_row(each.name, each.language + mark, words, each.source)
        console.print(table)
        return
    only = chosen[0]
    console.print(Text.assemble((only.name, "bold"), f"  {only.language}  hash {only.hash}"))
    for text in (only.source, only.note):
        if text:
            console.print(text)
    for group, entries in only.groups.items():
        console.print(Text.assemble("\n", (group, "bold"), f" ({len(entries)})"))
        console.print(" ".join(entry.replace(" ", "_") for entry in entries))


def index_command(
    docs: Collection,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="IDX", help="The index, a folder.")],
    stemmer: Annotated[
        str, typer.Option(help="porter, another that PyStemmer knows (german, …), or none.")
    ] = "porter",
    stop_words: Annotated[
        str, typer.Option(help="lucene (33 English words), a file with one on each line, or none.")
    ] = "lucene",
    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing index, once the new one is complete.")
    ] = False,
    fields: Fields = "title,text",
    id_field: options.IdField = None,
    threads: options.Threads = None,
) -> None:
    """Build an index of a collection for `evenrank search`.

    The collection is streamed. The index exists only once it is complete: an interrupted run leaves nothing
    that can be opened, and the next one starts over.
    """
    from evenrank.data.docs import open_docs
    from evenrank.rankers.indexing import index

    source = open_docs(docs, fields=split_names(fields), id_field=id_field)
    set_threads(threads)
    with progress_bar("indexing", unit="bytes") as progress:
        built = index(
            source,
            output,
            stemmer=_unless_none(stemmer),
            stop_words=_unless_none(stop_words),
            overwrite=force,
            progress=progress,
        )
    note(f"{built.documents:,} documents, {built.terms:,} terms: {output}")


def search_command(
    queries: Annotated[str, typer.Option(metavar="Q", help="The queries: TSV, JSONL, TREC topics, irds:ID.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="RUN", help="The run, in TREC format.")],
    index: Annotated[
        Path | None, typer.Option(metavar="IDX", help="An index made by `evenrank index`.")
    ] = None,
    engine: Annotated[
        str | None, typer.Option(metavar="URL", help="A live engine, such as sqlite:///docs.db?table=docs.")
    ] = None,
    ranker: Annotated[
        str,
        typer.Option(
            metavar="NAME|MODEL",
            help="bm25, qld, tfidf, bm25+rm3, w2v_add, dense, hybrid, …, or a folder made by "
            "`evenrank train`.",
        ),
    ] = "bm25",
    depth: Annotated[int, typer.Option(min=1, help="Maximum number of documents per query.")] = 1000,
    given: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of the ranker: k1=0.6; repeatable."),
    ] = None,
    qrels: Annotated[
        str | None, typer.Option(metavar="QR", help="Judgments, for the rankers perfect and random.")
    ] = None,
    lexicon: Annotated[
        str | None, typer.Option(metavar="L", help="Words of each group, for bias-aware feedback.")
    ] = None,
    vectors: Annotated[
        str | None, typer.Option(metavar="V", help="Word vectors, for w2v_add, w2v_si.")
    ] = None,
    tag: Annotated[
        str | None, typer.Option(help="Name of the run, written in its last column.", show_default="NAME")
    ] = None,
    threads: options.Threads = None,
) -> None:
    """Rank the documents of an index, or of a live engine, for each query.

    Example: evenrank search --index IDX --queries queries.tsv --ranker bm25 --set k1=0.6 -o bm25.run
    """
    from evenrank.data.read import read_queries
    from evenrank.data.runs import write_run
    from evenrank.rankers.registry import parse_settings, ranker_for, settings

    if index is not None and engine is not None:
        raise InputError("--index and --engine are both given; choose one")
    name = engine or ranker
    chosen: dict[str, Any] = parse_settings(name, given or [])
    for key, value in (("qrels", qrels), ("lexicon", lexicon), ("vectors", vectors)):
        if value is None:
            continue
        if key not in settings(name):
            # the URL of an engine may hold a password
            raise InputError(f"--{key}: {'a live engine' if engine else name} does not use it")
        if key in chosen:
            raise InputError(f"{key} is given twice, by --{key} and --set")
        chosen[key] = value
    refuse_place(output, tag)
    requested = read_queries(queries)
    set_threads(threads)
    built = ranker_for(engine or index, ranker, **chosen)
    encodes = ranker.startswith(("dense", "w2v"))  # the documents first, where that is not yet done
    with progress_bar("searching", unit="documents, then queries" if encodes else "queries") as progress:
        run = built.rank(requested, depth=depth, progress=progress)
    if run.is_empty():
        raise InputError(
            "nothing was found for any query; are they in the language of the documents?", path=queries
        )
    write_run(run, output, name=built.name if tag is None else tag)
    for remark in getattr(built, "notes", ()):  # of a live engine: failed queries, results shown twice
        note(remark)
    _tell(run, requested, output)


def ranked_runs(
    rankers: Iterable[str], given: GivenInputs, depth: int, output: Path | None, *, taken: Container[str]
) -> dict[str, str]:
    """What rankers find in a collection: runs by name, written to OUTPUT/runs.

    The index is built once, in the user's cache.
    """
    from evenrank.data.docs import open_docs
    from evenrank.data.files import is_model
    from evenrank.data.read import read_queries
    from evenrank.data.runs import write_run
    from evenrank.rankers.indexing import cached_index
    from evenrank.rankers.neural.reranking import refuse_training_queries
    from evenrank.rankers.registry import make, needs_index

    named: dict[str, str] = {}
    for text in rankers:
        name, equals, ranker = text.partition("=")
        if not equals or is_model(text):
            name, ranker = Path(text).resolve().name if is_model(text) else text, text
        if not name or not ranker or (equals and Path(name).name != name):
            raise InputError(f"--ranker {text!r}: write it as NAME=RANKER or RANKER; NAME becomes a file")
        if name in named or name in taken:
            raise InputError(f"two runs are called {name!r}; give one another name: --ranker NAME={ranker}")
        if not needs_index(ranker):
            raise InputError(f"--ranker {ranker}: it searches no collection; use `evenrank search`")
        named[name] = ranker
    if given.docs is None or given.queries is None:
        raise InputError("--ranker searches a collection for queries; give --docs and --queries")
    if output is None:
        raise InputError("the runs of --ranker are kept beside the report; name its folder with -o DIR")
    docs = open_docs(given.docs, fields=split_names(given.fields), id_field=given.id_field)
    index, requested = cached_index(docs, note), read_queries(given.queries)
    result = {name: output / "runs" / f"{name}.run" for name in named}
    rankers_made = {name: make(ranker, index=index) for name, ranker in named.items()}
    for built in rankers_made.values():
        refuse_training_queries(built, requested)
    for name, built in rankers_made.items():
        with progress_bar(f"searching with {name}", unit="queries") as progress:
            run = built.rank(requested, depth=depth, progress=progress)
        if run.is_empty():
            raise InputError(f"--ranker {named[name]}: nothing was found for any query", path=given.queries)
        result[name].parent.mkdir(parents=True, exist_ok=True)
        write_run(run, result[name], name=name)
        for remark in getattr(built, "notes", ()):
            note(f"{name}: {remark}")
    return {name: str(path) for name, path in result.items()}


def _tell(run: pl.DataFrame, requested: pl.DataFrame, output: Path) -> None:
    """What was found, and for which queries nothing was."""
    answered = set(run["query_id"].unique().to_list())
    without = [each for each in requested["query_id"].to_list() if each not in answered]
    if without:
        shown = ", ".join(without[:5]) + (", …" if len(without) > 5 else "")
        note(f"nothing was found for {len(without):,} of {len(requested):,} queries: {shown}")
    note(f"{len(run):,} documents for {len(answered):,} queries: {output}")


def _unless_none(text: str) -> str | None:
    return None if text.lower() == "none" else text
