"""A bundle can be checked by someone who was not there, and nothing in it can change unnoticed."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank import demo
from evenrank.auditing.bundle import BundleError, Input, archive, as_json, read_bundle, write_bundle
from evenrank.auditing.rules import PROFILES, Profile
from evenrank.auditing.selection import Selection, selection
from evenrank.cli import main
from evenrank.data.docs import open_docs
from evenrank.data.runs import read_run

STATED = ["--auditor", "A. Person", "--date", "2026-11-16", "--purpose", "a test"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    demo.copy_to(folder)
    docs = open_docs(folder / "docs.tsv").frame()
    rows = [
        f"{doc_id}\t{'FM'[n % 2]}\t{'abc'[n % 3] if n % 7 else ''}" for n, doc_id in enumerate(docs["doc_id"])
    ]
    (folder / "people.tsv").write_text("\n".join(["doc_id\tsex\trace", *rows]) + "\n")
    return folder


def audit(data: Path, target: Path, *more: str) -> int:
    runs = [str(data / "bm25.run"), str(data / "dense.run")]
    given = ["--docs", str(data / "docs.tsv"), "--qrels", str(data / "qrels.txt")]
    quick = ["ARaB@10", "nDCG@10", "--resamples", "50", "--no-pdf"]
    return main(["audit", *runs, *given, *quick, "--bundle", str(target), *more])


@pytest.fixture(scope="module")
def bundle(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("bundle") / "audit.zip"
    assert audit(data, target, *STATED) == 0
    return target


def resealed(bundle: Path, target: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """A forgery that is consistent in itself: other files, and a manifest that fits them."""
    found = read_bundle(bundle)
    files = dict(found.files)
    change(files)
    write_bundle(target, files, {one.name: one for one in found.inputs})
    return target


def test_without_inputs_only_hashes_are_checked_and_it_says_so(
    bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(bundle)]) == 0
    said = capsys.readouterr().out
    assert "hashes consistent; numbers not re-computed" in said
    assert "unsigned: authorship not proven" in said
    assert read_bundle(bundle).sha256 in said


def test_with_inputs_every_number_is_computed_again(
    bundle: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(bundle), "--inputs", str(data)]) == 0
    assert b"with 80% power" in read_bundle(bundle).files["methods.md"]
    assert "match: " in (said := capsys.readouterr().out) and "numbers re-computed, all the same" in said


def test_the_same_audit_gives_the_same_archive(bundle: Path, data: Path, tmp_path: Path) -> None:
    assert audit(data, tmp_path / "audit.zip", *STATED) == 0
    ours, theirs = read_bundle(tmp_path / "audit.zip"), read_bundle(bundle)
    differing = {name for name in ours.files if ours.files[name] != theirs.files[name]}
    assert differing <= {"command.json"}  # it names the file that was asked for


def test_inputs_are_found_by_content_under_any_name(bundle: Path, data: Path, tmp_path: Path) -> None:
    for n, path in enumerate(sorted(data.iterdir())):
        (tmp_path / f"folder-{n % 2}").mkdir(exist_ok=True)
        shutil.copy(path, tmp_path / f"folder-{n % 2}" / f"renamed-{n}")
    assert main(["verify", str(bundle), "--inputs", str(tmp_path)]) == 0


def test_a_forged_number_passes_the_hashes_but_not_the_inputs(
    bundle: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def change(files: dict[str, bytes]) -> None:
        content = json.loads(files["audit.json"])
        content["runs"][0]["measures"][0]["value"] = 0.0
        files["audit.json"] = as_json(content)

    forged = resealed(bundle, tmp_path / "forged.zip", change)
    assert main(["verify", str(forged)]) == 0
    assert main(["verify", str(forged), "--inputs", str(data)]) == 1
    said = capsys.readouterr().out
    assert "mismatch: audit.json" in said and "runs[0].measures[0].value: 0.0 in the bundle" in said


def test_a_report_that_says_something_else_is_a_mismatch(bundle: Path, data: Path, tmp_path: Path) -> None:
    def change(files: dict[str, bytes]) -> None:
        files["report.html"] = files["report.html"].replace(b"leans male", b"is fair")

    forged = resealed(bundle, tmp_path / "forged.zip", change)
    assert main(["verify", str(forged), "--inputs", str(data)]) == 1


def test_another_input_is_a_mismatch_and_a_lacking_one_is_named(
    bundle: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(data, tmp_path / "changed")
    with (tmp_path / "changed" / "qrels.txt").open("a") as file:
        file.write("q01 0 d0001 1\n")
    assert main(["verify", str(bundle), "--inputs", str(tmp_path / "changed")]) == 1
    assert "qrels.txt (qrels) is not the file of the audit" in capsys.readouterr().out
    (tmp_path / "changed" / "qrels.txt").unlink()
    assert main(["verify", str(bundle), "--inputs", str(tmp_path / "changed")]) == 2
    assert "qrels.txt (qrels) is not there" in capsys.readouterr().err


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("small") / "small.zip"
    files = {"audit.json": b"{}\n", "tables/values.csv": b"run,value\n", "statement.json": b"{}\n"}
    write_bundle(path, files, {"docs.tsv": Input("docs", "docs.tsv", 3, "0" * 64)})
    return path


@given(st.data())
def test_any_changed_byte_is_noticed(small: Path, data: st.DataObject) -> None:
    content = bytearray(small.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    other = small.with_name("other.zip")
    other.write_bytes(content)
    with pytest.raises(BundleError):
        read_bundle(other)


@pytest.mark.parametrize("cut", [0, 1, 50, -1])
def test_a_cut_archive_is_damaged(
    small: Path, tmp_path: Path, cut: int, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cut.zip").write_bytes(small.read_bytes()[:cut])
    assert main(["verify", str(tmp_path / "cut.zip")]) == 5
    assert capsys.readouterr().out.startswith("damaged: ")


def test_appended_bytes_and_comments_are_noticed(small: Path, tmp_path: Path) -> None:
    (tmp_path / "more.zip").write_bytes(small.read_bytes() + b"x")
    with pytest.raises(BundleError):
        read_bundle(tmp_path / "more.zip")
    shutil.copy(small, tmp_path / "said.zip")
    with zipfile.ZipFile(tmp_path / "said.zip", "a") as target:
        target.comment = b"all is well"
    with pytest.raises(BundleError, match="changed"):
        read_bundle(tmp_path / "said.zip")


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil", "a\\..\\evil", "./evil"])
def test_names_that_lead_outside_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "evil.zip").write_bytes(archive({name: b"x"}))
    with pytest.raises(BundleError, match=r"outside|manifest|whole"):
        read_bundle(tmp_path / "evil.zip")
    assert {path.name for path in tmp_path.iterdir()} == {"evil.zip"}


@pytest.mark.parametrize(
    "names",
    [["../evil"], ["/tmp/evil"], ["a/../../evil"], ["a\\b"], ["a//b"], ["x" * 300], ["a", "a"], ["a", "a/b"]],
)
def test_names_of_inputs_that_lead_outside_never_touch_the_disk(
    bundle: Path, data: Path, tmp_path: Path, names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    found = read_bundle(bundle)
    manifest = json.loads(zipfile.ZipFile(bundle).read("manifest.json"))
    for name, one in zip(names, manifest["inputs"], strict=False):
        one["name"] = name
    content = archive({"manifest.json": as_json(manifest), **found.files})
    (tmp_path / "evil.zip").write_bytes(content)
    assert main(["verify", str(tmp_path / "evil.zip"), "--inputs", str(data)]) == 5
    said = capsys.readouterr().out
    assert said.startswith("damaged: ") and "it names " in said and said.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"evil.zip"}


def test_a_bundle_has_no_file_read_that_is_not_among_its_inputs(
    bundle: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "secret.txt").write_text("secret\n")

    def change(files: dict[str, bytes]) -> None:
        command = json.loads(files["command.json"])
        command["asked"]["given"]["genders"] = {"name": str(tmp_path / "secret.txt")}
        files["command.json"] = as_json(command)

    evil = resealed(bundle, tmp_path / "evil.zip", change)
    assert main(["verify", str(evil), "--inputs", str(data)]) == 2
    assert "names a file that is not among its inputs" in capsys.readouterr().err


def test_inputs_with_the_same_name_never_get_a_name_that_is_a_folder_too(tmp_path: Path) -> None:
    taken: dict[str, Input] = {}
    roles = ("qrels", "run a", "run ../../b", "run run-a", "run-run-a")
    for number, role in enumerate(roles):
        file = tmp_path / str(number) / ("run-a" if role == "run-run-a" else "qrels")
        file.parent.mkdir()
        file.write_text(str(number))
        one = Input.of(role, file, taken)
        taken[one.name] = one
    assert len(taken) == len(roles)
    write_bundle(tmp_path / "b.zip", {}, taken)
    assert [one.name for one in read_bundle(tmp_path / "b.zip").inputs] == list(taken)


def test_a_name_with_a_line_break_is_told_in_one_line(tmp_path: Path) -> None:
    manifest = {"format": "evenrank-bundle", "version": 1, "inputs": [], "files": {}}
    (tmp_path / "b.zip").write_bytes(archive({"manifest.json": as_json(manifest), "a\nb\x1b[2J": b""}))
    with pytest.raises(BundleError) as refused:
        read_bundle(tmp_path / "b.zip")
    assert r"'a\nb\x1b[2J' is in the archive but not in the manifest" in str(refused.value)


def test_nothing_is_unpacked_so_nothing_can_explode(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("manifest.json", b"0" * (1 << 24))
    (tmp_path / "bomb.zip").write_bytes(buffer.getvalue())
    with pytest.raises(BundleError, match="packed"):
        read_bundle(tmp_path / "bomb.zip")


@pytest.mark.parametrize("missing", ["--auditor", "--date", "--purpose"])
def test_a_missing_field_makes_a_bundle_incomplete_and_is_named(
    data: Path, tmp_path: Path, missing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place = STATED.index(missing)
    stated = STATED[:place] + STATED[place + 2 :]
    assert audit(data, tmp_path / "audit.zip", *stated) == 4
    assert f"missing: {missing.removeprefix('--')}: " in (said := capsys.readouterr().err)
    assert "incomplete: the profile general" in said
    assert main(["verify", str(tmp_path / "audit.zip")]) == 0
    assert f"profile general: incomplete: {missing.removeprefix('--')}" in capsys.readouterr().out


def test_bounds_need_a_reason(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bound = ["--fail-if", "abs(ARaB@10)>5"]
    assert audit(data, tmp_path / "a.zip", *STATED, *bound) == 4
    assert "threshold-reason" in capsys.readouterr().err
    assert audit(data, tmp_path / "a.zip", *STATED, *bound, "--threshold-reason", "never reached") == 0


def test_fields_are_refused_before_the_work(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = ["audit", str(data / "bm25.run"), "--docs", str(data / "docs.tsv")]
    for more, said in (
        (["--auditor", "me"], "--auditor belongs in a bundle; name one with --bundle FILE.zip"),
        (["--bundle", "a.zip", "--date", "yesterday"], "date is 'yesterday'; write it as YYYY-MM-DD"),
        (["--bundle", "a.zip", "--field", "purpos=x"], "no field 'purpos'; did you mean 'purpose'?"),
        (["--bundle", "a.zip", "--field", "x"], "write it as NAME=TEXT"),
        (["--bundle", "a.zip", "--profile", "eu-dsa", "--field", "opinion=good"], "positive with comments"),
        (["--bundle", "a.zip", "--field", "bias=none"], "is computed from the inputs"),
    ):
        assert main([*runs, *more]) == 2
        assert said in capsys.readouterr().err


NYC = [
    *("--profile", "nyc-ll144", *STATED),
    *("--field", "independence=no part in the tool", "--field", "data-source=the demo collection"),
    *("--field", "data-kind=historical", "--field", "distribution-date=2026-12-01"),
    *("--field", "categories=made up for this test"),
]


def test_new_york_needs_rates_by_sex_and_race_and_crossed(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit(data, tmp_path / "a.zip", *NYC) == 4
    said = capsys.readouterr().err
    for field in ("sex-rates", "race-rates", "crossed-rates", "unknown-count"):
        assert f"missing: {field}: documents have no groups" in said
    assert "6 RCNY § 5-301(b)(5)" in said
    assert audit(data, tmp_path / "a.zip", *NYC, "--labels", str(data / "people.tsv")) == 0
    found = read_bundle(tmp_path / "a.zip")
    table = pl.read_csv(found.files["tables/selection.csv"])
    assert set(table["kind"]) == {"sex", "race", "sex × race"}
    assert main(["verify", str(tmp_path / "a.zip"), "--inputs", str(data)]) == 0
    statement = found.json("statement.json")
    assert all(field["clause"] for field in statement["fields"])
    assert [text["date"] for text in statement["follows"]] == ["2021-12-11", "2023-04-06"]
    assert "no legal advice" in statement["disclaimer"]
    report = found.files["report.html"].decode()
    assert "Selection rates" in report and "What this bundle does not hold" in report
    scores = read_run(data / "bm25.run")["score"]
    assert found.json("audit.json")["selection"]["median_score"]["bm25"] == scores.median()
    assert "Median score of all candidates" in report


@pytest.mark.parametrize("profile", PROFILES.values(), ids=list(PROFILES))
def test_every_field_cites_a_clause_and_the_date_of_its_text(profile: Profile) -> None:
    assert len({one.name for one in profile.fields}) == len(profile.fields)
    for one in (*profile.fields, *profile.elsewhere):
        assert one.clause and one.asks
        assert one.text in (*profile.follows, PROFILES["general"].follows[0])
        assert date.fromisoformat(one.text.date).isoformat() == one.text.date
        assert one.text.applies and one.text.read
        assert one.cited.endswith("not checked against the text") != one.checked
    assert profile.elsewhere or profile.name == "general"
    page = (Path(__file__).parent.parent / "docs" / "auditors.md").read_text()
    for text in profile.follows[profile.name == "general" :]:
        day = date.fromisoformat(text.date)
        assert f"{day.day} {day:%B %Y}" in page, text


def test_an_unchecked_clause_says_so_wherever_it_is_named(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit(data, tmp_path / "a.zip", *STATED, "--profile", "eu-dsa") == 4
    said = capsys.readouterr().err
    assert "(Article 37(4)(c); number not checked against the text)" in said
    assert "missing: risk: which systemic risk is looked at, and for whom (Article 34(1)(b))" in said
    statement = read_bundle(tmp_path / "a.zip").json("statement.json")
    fields = {field["name"]: field for field in statement["fields"]}
    assert not fields["opinion"]["checked"] and fields["risk"]["checked"]
    assert fields["recommendations"]["date"] == "2024-02-02"
    assert any("Article 42" in one["clause"] for one in statement["not_delivered"])


def test_the_ai_act_wants_bounds_and_what_was_done_against_bias(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fields = [
        f"--field={one.name}=said"
        for one in PROFILES["eu-ai-act"].fields
        if one.lacks is None
        and one.name not in ("auditor", "date", "purpose", "threshold-reason", "mitigation")
    ]
    asked = [*STATED, "--profile", "eu-ai-act", *fields]
    assert audit(data, tmp_path / "a.zip", *asked) == 4
    said = capsys.readouterr().err
    assert "missing: bounds: no bound was set; give --fail-if (Article 9(8))" in said
    assert "missing: mitigation: what was done against bias (Article 10(2)(g))" in said
    asked += ["--fail-if", "abs(ARaB@10)>5", "--threshold-reason", "a test", "--field", "mitigation=none"]
    assert audit(data, tmp_path / "a.zip", *asked) == 0


def test_test_data_need_a_reason(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [each.replace("historical", "test") for each in NYC]
    assert audit(data, tmp_path / "a.zip", *given, "--labels", str(data / "people.tsv")) == 4
    assert "missing: test-data-reason" in capsys.readouterr().err


def test_lists_that_select_everybody_give_no_rates(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ["--labels", str(data / "people.tsv"), "--selected", "50"]
    assert audit(data, tmp_path / "a.zip", *NYC, *more) == 4
    assert "no list is longer than 50, so everybody is selected" in capsys.readouterr().err


def rates(groups: dict[str, str], ranked: list[str], at: int) -> Selection:
    run = read_run({"q": {doc: float(len(ranked) - n) for n, doc in enumerate(ranked)}})
    return selection(
        {"run": run}, pl.DataFrame({"doc_id": list(groups), "sex": list(groups.values())}), at=at
    )


def test_impact_ratios_by_hand() -> None:
    ranked = [f"d{n}" for n in range(10)]
    groups = {doc: "f" if n in (0, 6, 7, 8) else "m" for n, doc in enumerate(ranked[:9])}
    found = rates(groups, ranked, at=4)
    female, male = found.impacts("run", "sex")
    assert (female.category.candidates, female.category.selected, female.rate) == (4, 1, 0.25)
    assert (male.category.candidates, male.category.selected, male.rate) == (5, 3, 0.6)
    assert male.ratio == 1.0 and female.ratio == pytest.approx(0.25 / 0.6)
    assert found.unknown == {"run": {"sex": 1}} and found.totals == {"run": 10}
    scored = found.impacts("run", "sex", "scoring")  # the median lies between ranks 5 and 6
    assert [one.category.above for one in scored] == [1, 4]


def test_small_categories_get_a_rate_but_no_ratio_and_set_no_standard() -> None:
    ranked = [f"d{n}" for n in range(100)]
    groups = {doc: "x" if n == 0 else "abc"[n % 3] for n, doc in enumerate(ranked)}
    found = rates(groups, ranked, at=10)
    assert max(one.ratio or 0 for one in found.impacts("run", "sex") if one.category.category != "x") < 0.2
    kept = found.impacts("run", "sex", smallest=0.02)
    (x,) = (one for one in kept if one.category.category == "x")
    assert x.excluded and x.ratio is None and x.rate == 1.0
    assert max(one.ratio or 0 for one in kept) == 1.0


def test_exclusion_needs_the_auditors_reason(data: Path, tmp_path: Path) -> None:
    rows = (data / "people.tsv").read_text().split("\n")
    ranked = read_run(data / "bm25.run")["doc_id"].value_counts().sort("count", "doc_id")
    rare = ranked["doc_id"][0]
    rows = [row if not row.startswith(f"{rare}\t") else f"{rare}\tF\tz" for row in rows]
    (tmp_path / "people.tsv").write_text("\n".join(rows))
    labels = ["--labels", str(tmp_path / "people.tsv")]
    excluded = []
    for n, more in enumerate(([], ["--field", "exclusion-reason=too few to tell"])):
        assert audit(data, tmp_path / f"{n}.zip", *NYC, *labels, *more) == 0
        found = read_bundle(tmp_path / f"{n}.zip")
        table = pl.read_csv(found.files["tables/selection.csv"])
        excluded.append(set(table.filter("excluded")["category"]))
        assert any("race z" in line for line in found.json("statement.json")["exclusions"])
    assert excluded[0] == set() and {"z", "female × z"} <= excluded[1]


@given(st.lists(st.sampled_from(["a", "b", "c", ""]), min_size=3, max_size=30), st.integers(1, 10))
def test_rates_and_ratios_lie_between_0_and_1_and_count_everybody(labels: list[str], at: int) -> None:
    ranked = [f"d{n}" for n in range(len(labels))]
    if not any(labels):
        return
    found = rates(dict(zip(ranked, labels, strict=True)), ranked, at)
    each = found.impacts("run", "sex")
    assert sum(one.category.candidates for one in each) + found.unknown["run"]["sex"] == len(ranked)
    assert all(0 <= one.rate <= 1 and (one.ratio is None or 0 <= one.ratio <= 1) for one in each)
    assert any(one.ratio == 1 for one in each) or all(one.rate == 0 for one in each)


def test_a_signature_proves_who_signed(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], data: Path
) -> None:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("needs ssh-keygen")
    key, other = tmp_path / "key", tmp_path / "other"
    for each in (key, other):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", each], check=True)
    signers = tmp_path / "signers"
    signers.write_text(f"a@example.org {key.with_suffix('.pub').read_text()}")
    target = tmp_path / "audit.zip"
    assert audit(data, target, *STATED, "--sign", str(key)) == 0
    assert main(["verify", str(target), "--signers", str(signers)]) == 0
    assert "signed by a@example.org" in capsys.readouterr().out
    assert main(["verify", str(target)]) == 0
    assert "authorship not proven" in capsys.readouterr().out
    signers.write_text(f"b@example.org {other.with_suffix('.pub').read_text()}")
    assert main(["verify", str(target), "--signers", str(signers)]) == 5
    shutil.copy(bundle, target)  # another archive beside the same signature
    assert main(["verify", str(target)]) == 5
    assert "the signature does not fit" in capsys.readouterr().out


def test_a_signature_of_minisign_is_checked_by_minisign(
    bundle: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which("minisign") is None:
        pytest.skip("needs minisign")
    key, public, target = tmp_path / "key", tmp_path / "key.pub", tmp_path / "audit.zip"
    subprocess.run(["minisign", "-G", "-W", "-p", public, "-s", key], check=True, capture_output=True)
    assert audit(data, target, *STATED, "--sign", str(key)) == 0
    assert main(["verify", str(target), "--signers", str(public)]) == 0
    assert f"signed with the key of {public}" in capsys.readouterr().out
    shutil.copy(bundle, target)
    assert main(["verify", str(target), "--signers", str(public)]) == 5


def test_an_older_signature_is_said_to_fit_no_longer(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "audit.zip.sig").write_text("of another day")
    assert audit(data, tmp_path / "audit.zip", *STATED) == 0
    assert "audit.zip.sig is older than the bundle and does not fit it" in capsys.readouterr().err


def test_a_print_is_left_out_where_there_is_no_browser_and_that_is_said(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from evenrank.show import report

    monkeypatch.setattr(report, "BROWSERS", ("no-such-browser",))
    assert audit(data, tmp_path / "a.zip", *STATED, "--pdf") == 0
    assert "report.pdf left out: no Chromium is installed" in capsys.readouterr().err
    assert "report.pdf" not in read_bundle(tmp_path / "a.zip").files


@pytest.mark.slow
def test_the_print_holds_the_statement(data: Path, tmp_path: Path) -> None:
    if not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        pytest.skip("needs a Chromium: apt install chromium")
    assert audit(data, tmp_path / "a.zip", *STATED, "--pdf") == 0
    assert read_bundle(tmp_path / "a.zip").files["report.pdf"].startswith(b"%PDF-")
    assert main(["verify", str(tmp_path / "a.zip"), "--inputs", str(data)]) == 0
