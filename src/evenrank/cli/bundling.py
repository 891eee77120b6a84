"""An audit as it was asked for, and what makes a bundle of it: shared by `audit` and `verify`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenrank.cli.common import Missing, Order, Tokenizer, note, progress_bar
from evenrank.cli.options import GivenInputs, Ties
from evenrank.errors import InputError

if TYPE_CHECKING:
    from evenrank.auditing.bundle import Input
    from evenrank.auditing.profiles import Statement
    from evenrank.auditing.result import Audit

INCOMPLETE = 4
"""Exit code: the bundle was written, but a field that its profile needs is missing."""
_CHOICES: dict[str, type[StrEnum]] = {
    "tokenizer": Tokenizer,
    "missing": Missing,
    "ties": Ties,
    "order": Order,
}
_FILES = (
    "docs", "tally", "lexicon", "queries", "qrels", "background", "vectors", "pairs", "labels", "dictionary",
    "targets", "genders",
)  # fmt: skip

_TABLES = ("variants",)


class ProfileName(StrEnum):
    general = "general"
    nyc = "nyc-ll144"
    dsa = "eu-dsa"
    ai_act = "eu-ai-act"


_PANEL = "A bundle for others to check"


@dataclass(frozen=True)
class Sealing:
    """What is said about an audit that others shall be able to check."""

    bundle: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.zip",
            help="Also write one archive with report, numbers, hashes of the inputs and the fields below.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    profile: Annotated[
        ProfileName | None,
        typer.Option(
            help="Which fields the bundle must state.", show_default="general", rich_help_panel=_PANEL
        ),
    ] = None
    auditor: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who made the audit.", rich_help_panel=_PANEL)
    ] = None
    date: Annotated[
        str | None,
        typer.Option(metavar="YYYY-MM-DD", help="Day of the audit.", rich_help_panel=_PANEL),
    ] = None
    purpose: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What the audit is for.", rich_help_panel=_PANEL)
    ] = None
    threshold_reason: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Why the bounds of --fail-if were chosen.", rich_help_panel=_PANEL),
    ] = None
    field: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=TEXT", help="Another field of the profile. Repeatable.", rich_help_panel=_PANEL
        ),
    ] = None
    sign: Annotated[
        Path | None,
        typer.Option(
            metavar="KEY",
            help="Sign the bundle with this key of ssh-keygen or minisign.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    pdf: Annotated[
        bool, typer.Option(help="Print the report as PDF, if Chromium is installed.", rich_help_panel=_PANEL)
    ] = True

    def stated(self) -> dict[str, str]:
        """The fields by name; one given twice is refused."""
        result = {
            name.replace("_", "-"): value
            for name in ("auditor", "date", "purpose", "threshold_reason")
            if (value := getattr(self, name)) is not None
        }
        for text in self.field or []:
            name, equals, value = text.partition("=")
            if not equals or not name.strip():
                raise InputError(f"--field {text!r}: write it as NAME=TEXT")
            if name.strip() in result:
                raise InputError(f"the field {name.strip()!r} is given twice")
            result[name.strip()] = value
        return result

    def check(self) -> None:
        """Refuse what only a bundle could use, and places where none can be written."""
        if self.bundle is None:
            for one in fields(self):
                if getattr(self, one.name) not in (None, []) and one.name not in ("bundle", "pdf"):
                    raise InputError(
                        f"--{one.name.replace('_', '-')} belongs in a bundle; name one with --bundle FILE.zip"
                    )
            return
        if self.bundle.is_dir():
            raise InputError("is a folder; name a file", path=self.bundle)
        from evenrank.auditing.profiles import checked

        checked(self.profile_name, self.stated())

    @property
    def profile_name(self) -> str:
        return (self.profile or ProfileName.general).value


@dataclass(frozen=True)
class Asked:
    """Everything that decides the numbers of an audit, as the command line gives it."""

    runs: Mapping[str, str]
    measures: tuple[str, ...]
    given: GivenInputs
    baseline: str | None = None
    fail_if: tuple[str, ...] = ()
    judging: str | None = None
    delta: tuple[str, ...] = ()
    only: str | None = None
    confidence: float = 0.95
    resamples: int = 2000
    seed: int = 0
    selected: int | None = None
    variants: str | None = None
    stages: Mapping[str, str] = field(default_factory=dict)
    rankers: tuple[str, ...] = ()
    title: str | None = None
    per_query: bool = False

    def audit(self) -> Audit:
        """Do it."""
        from evenrank.auditing import audit

        with progress_bar("counting", unit="bytes") as progress:
            return audit(
                dict(self.runs),
                list(self.measures) or None,
                baseline=self.baseline,
                only=self.only,
                fail_if=self.fail_if,
                judging=self.judging,  # type: ignore[arg-type]  # the option knows which there are
                confidence=self.confidence if self.resamples else None,
                resamples=self.resamples or 1,
                seed=self.seed,
                delta=self.delta,
                selected=self.selected,
                variants=self.variants,
                stages=dict(self.stages) or None,
                rankers=list(self.rankers) or None,
                progress=progress,
                **self.given.keywords(dict(self.runs)),
            )

    @property
    def more(self) -> dict[str, Any]:
        """What the report is told beside the audit."""
        return {"title": self.title} if self.title else {}

    def files(self) -> dict[str, Input]:
        """Every file that is read, hashed, by the path that it was given as."""
        from evenrank.auditing.bundle import Input

        result: dict[str, Input] = {}
        given = {f"run {name}": path for name, path in self.runs.items()}
        given |= {name: value for name in _FILES if (value := getattr(self.given, name)) is not None}
        given |= {name: value for name in _TABLES if (value := getattr(self, name)) is not None}
        given |= {f"stage {name}": path for name, path in self.stages.items()}
        for role, value in given.items():
            path = Path(value)
            if (role == "background" and value in self.runs) or value in result:
                continue
            if path.is_dir():
                raise InputError("is a folder; a bundle needs inputs that are files", path=path)
            if path.is_file():
                result[value] = Input.of(role, path, {one.name: one for one in result.values()})
            elif path.exists():
                problem = "is not a regular file, so it cannot be read a second time; save it to a file first"
                raise InputError(problem, path=path)
        return result

    def to_dict(self, files: Mapping[str, Input]) -> dict[str, Any]:
        """As JSON knows it; files by their names in the bundle."""

        def kept(value: str) -> dict[str, str]:
            return {"input": files[value].name} if value in files else {"name": value}

        options = {
            one.name: getattr(self, one.name)
            for one in fields(self)
            if one.name not in ("runs", "measures", "given")
        }
        options |= {name: kept(value) for name in _TABLES if (value := options[name]) is not None}
        options["stages"] = {name: kept(path) for name, path in self.stages.items()}
        given = {
            one.name: kept(value) if one.name in _FILES and value is not None else value
            for one in fields(self.given)
            if one.name != "run"
            for value in [getattr(self.given, one.name)]
        }
        runs = {name: kept(path) for name, path in self.runs.items()}
        return {"runs": runs, "measures": list(self.measures), "given": given, "options": options}

    @classmethod
    def of(cls, requested: Mapping[str, Any], files: Mapping[str, Path]) -> Asked:
        """The same again, with the files where they lie now."""

        def found(value: Any) -> Any:
            if not isinstance(value, Mapping):
                return value
            if "input" in value:
                return str(files[value["input"]])
            if Path(value["name"]).is_file():  # no file but the inputs is read for a bundle
                problem = "the bundle names a file that is not among its inputs"
                raise InputError(f"{problem}: {value['name']}")
            return value["name"]

        given: dict[str, Any] = {
            name: _CHOICES[name](value) if name in _CHOICES and value is not None else found(value)
            for name, value in requested["given"].items()
        }
        kept = requested["options"]
        options = {name: found(value) for name, value in kept.items() if name != "stages"}
        options["stages"] = {name: found(value) for name, value in kept.get("stages", {}).items()}
        for name in ("fail_if", "delta", "rankers"):
            options[name] = tuple(options.get(name, ()))
        runs = {name: found(value) for name, value in requested["runs"].items()}
        return cls(runs, tuple(requested["measures"]), GivenInputs(**given), **options)


def made(
    requested: Asked, found: Audit, statement: Statement, inputs: Mapping[str, Input]
) -> dict[str, bytes]:
    """Every file of a bundle that the inputs and the statement decide."""
    from evenrank.auditing import bundle, datasheet
    from evenrank.auditing.profiles import exclusions
    from evenrank.measures.inputs import Inputs

    opened = Inputs.open(dict(requested.runs), **requested.given.keywords(dict(requested.runs)))
    sheet = datasheet.data_sheet(opened, found, statement.given.get("languages"))
    left = datasheet.remaining(found)
    told = statement.to_dict() | {"exclusions": exclusions(statement, found)}
    shown = told | {
        "sheet": datasheet.flat(sheet),
        "remaining": left,
        "inputs": [one.to_dict() for one in inputs.values()],
    }
    files = {
        bundle.AUDIT: found.to_json(per_query=requested.per_query).encode(),
        bundle.REPORT: found.page(statement=shown, **requested.more).encode(),
        bundle.STATEMENT: bundle.as_json(told),
        "datasheet.json": bundle.as_json(sheet),
        "methods.md": datasheet.methods(found).encode(),
        "limits.md": datasheet.limits(found).encode(),
        "tables/values.csv": found.csv().encode(),
        "tables/values.tex": found.latex().encode(),
        "tables/remaining.csv": left.csv().encode(),
    }
    if found.selection is not None:
        files["tables/selection.csv"] = found.selection.frame(statement.smallest).write_csv().encode()
    return files


def seal(requested: Asked, found: Audit, sealing: Sealing) -> int:
    """Write the bundle and say what it is; the exit code says whether it is complete."""
    from evenrank import cli
    from evenrank.auditing import bundle
    from evenrank.auditing.profiles import state
    from evenrank.show.report import CannotPrintError, printed

    assert sealing.bundle is not None
    profile = sealing.profile_name
    statement = state(profile, sealing.stated(), found)
    read = requested.files()
    inputs = {one.name: one for one in read.values()}
    files = made(requested, found, statement, inputs)
    files[bundle.ENVIRONMENT] = bundle.as_json(bundle.environment())
    command = {
        "command": shlex.join(["evenrank", *cli.invoked]),
        "asked": requested.to_dict(read),
        "profile": profile,
        "stated": dict(statement.given),
    }
    files[bundle.COMMAND] = bundle.as_json(command)
    if sealing.pdf:
        try:
            files[bundle.PDF] = printed(files[bundle.REPORT].decode())
        except CannotPrintError as error:
            note(f"report.pdf left out: {error}")
    digest = bundle.write_bundle(sealing.bundle, files, inputs)
    note(f"bundle: {sealing.bundle}")
    note(f"SHA-256: {digest}")
    if sealing.sign is None:
        note(bundle.UNSIGNED.said)
        for end in (".sig", ".minisig"):
            if (older := sealing.bundle.with_name(sealing.bundle.name + end)).is_file():
                note(f"{older} is older than the bundle and does not fit it; remove it, or sign again")
    else:
        note(f"signature: {bundle.sign(sealing.bundle, sealing.sign)}")
    for name, why in statement.missing.items():
        clause = next(one.cited for one in statement.profile.fields if one.name == name)
        note(f"missing: {name}: {why} ({clause})")
    if not statement.complete:
        note(f"incomplete: the profile {profile} needs the fields above")
    return 0 if statement.complete else INCOMPLETE
