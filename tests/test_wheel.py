"""The wheel in an empty environment, used from a folder that has a package `core` of its own."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import core
from core.charts.influence import rho_histogram
from core.diagnosis import Diagnosis
from core.report.results import compare
from core.report.text import summary_json
from core.run import Run
from core.serving import app_folder, environment, show
from core.sources.simulation import simulate
from core.text.strict import json_value
from tests.installed import python_of

ROOT = Path(__file__).parent.parent
RECORDED = "sample_data/recorded_run_short"


def test_the_wheel_claims_one_name(wheel):
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
        tops = {name.split("/")[0] for name in names}
        assert tops == {"leadline", f"leadline-{core.__version__}.dist-info"}
        texts = {name: files.read(name).decode() for name in names if name.endswith(".py")}
    assert {"leadline/py.typed", "leadline/app/.streamlit/config.toml", "leadline/app/sample_data/questions.jsonl"} <= set(names)  # fmt: skip
    assert not [
        name
        for name, text in texts.items()
        if re.search(r"^\s*(from|import) (core|ui)\b", text, re.MULTILINE)
    ]
    assert not [name for name, text in texts.items() if "python -m core" in text]
    assert not [name for name in names if name.startswith(("leadline/app/sample_data/", "leadline/tests")) and name.endswith(".py")]  # fmt: skip
    assert wheel.stat().st_size < 5_000_000


def test_the_wheel_tells_its_components(wheel):
    information = f"leadline-{core.__version__}.dist-info"
    with zipfile.ZipFile(wheel) as files:
        text = files.read(f"{information}/sboms/leadline.cdx.json").decode()
        metadata = files.read(f"{information}/METADATA").decode()
    valid = JsonStrictValidator(SchemaVersion.V1_6)
    assert valid.validate_str(text) is None
    assert valid.validate_str(text.replace('"SHA-256"', '"SHA"', 1)) is not None
    told = json.loads(text)
    components = {one["name"]: one for one in told["components"]}
    requirements = [Requirement(one) for one in re.findall(r"^Requires-Dist: (.*)", metadata, re.MULTILINE)]
    wanted = {
        canonicalize_name(r.name): r.marker for r in requirements if 'extra == "dev"' not in str(r.marker)
    }
    (own,) = (one["dependsOn"] for one in told["dependencies"] if one["ref"] == told["metadata"]["component"]["purl"])  # fmt: skip
    assert {components[name]["bom-ref"] for name in wanted} == set(own) and len(own) > 25
    assert {components[name]["scope"] for name, marker in wanted.items() if not marker} == {"required"}
    assert components["torch"]["scope"] == components["ray"]["scope"] == "optional"
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    for name, one in components.items():
        (lines,) = re.findall(
            rf"^{name}=={re.escape(one['version'])} .*\n(?: .*\n)*", constraints, re.MULTILINE
        )
        told_hashes = [h["content"] for place in one["externalReferences"] for h in place["hashes"]]
        assert sorted(told_hashes) == sorted(re.findall(r"--hash=sha256:(\w+)", lines))


def test_the_environment_has_one_package_that_nothing_requires(project):
    folder, _ = project
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(folder / "env/bin/python"),
        "list",
        "--format",
        "json",
    ]

    def listed(*options: str) -> set[str]:
        found = subprocess.run([*pip, *options], capture_output=True, text=True, check=True)
        return {one["name"] for one in json.loads(found.stdout)}

    assert listed("--not-required") == {"leadline"}
    assert not {"torch", "transformers", "ray", "core"} & listed()


def test_public_names_are_there_and_documented(project):
    _, run = project
    code = "import json, leadline as ll; print(json.dumps({n: bool(getattr(ll, n).__doc__) for n in ll.__all__})); print(ll.__version__)"
    result = run("python", "-W", "error", "-c", code)
    documented, version = result.stdout.splitlines()
    assert json.loads(documented) == dict.fromkeys(core.__all__, True)
    assert version == core.__version__


def test_checkout_and_wheel_give_the_same_numbers(project):
    folder, run = project
    shutil.copytree(ROOT / RECORDED, folder / "recorded")
    result = run("leadline", "summary", "recorded", "--json")
    assert result.returncode == 0, result.stderr
    there = json.loads(result.stdout)
    here = json_value(summary_json(Diagnosis(Run.load(ROOT / RECORDED))))
    assert there == json.loads(json.dumps(here))
    run_id = run("python", "-c", "import leadline; print(leadline.simulate().run_id)").stdout.strip()
    assert run_id == simulate().run_id


def test_a_local_model_says_what_to_install(project):
    _, run = project
    result = run(
        "leadline", "analyze", "recorded", "--llm", "embedded", "--model", "some/model", "--out", "runs/new"
    )
    assert result.returncode == 3
    assert 'pip install "leadline[embedded]"' in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def drawn(figure: str) -> dict:
    """A figure without the colours and fonts of its process: Streamlit, once imported, sets its own."""
    found = json.loads(figure)
    del found["layout"]["template"]
    return found


def test_a_run_is_reported_compared_and_drawn_from_python_as_in_the_checkout(project):
    folder, run = project
    code = """
import leadline as ll
from pathlib import Path
samples = Path(ll.__file__).parent / "app/sample_data"
run, earlier = ll.Run.load(samples / "recorded_run_short"), ll.Run.load(samples / "recorded_run")
assert Path("report.html").absolute() == run.report("report.html").path.absolute()
print(ll.charts.influence.rho_histogram(ll.Diagnosis(run)["influence"]).to_json())
print(ll.compare(run, earlier))
"""
    result = run("python", "-W", "error", "-c", code)
    assert result.returncode == 0, result.stderr
    later, earlier = Run.load(ROOT / RECORDED), Run.load(ROOT / "sample_data/recorded_run")
    figure, _, compared = result.stdout.partition("\n")
    assert drawn(figure) == drawn(rho_histogram(Diagnosis(later)["influence"]).to_json())
    assert compared.strip() == str(compare(later, earlier)).strip()
    assert (folder / "report.html").read_text(encoding="utf-8") == later.report().html


def test_the_example_of_the_readme_runs_and_the_command_says_what_it_can(project):
    folder, run = project
    code = python_of(ROOT / "README.md")
    assert "leadline.analyze(" in code
    result = run("python", "-c", code)
    assert result.returncode == 0, result.stderr
    assert len(Run.load(folder / "runs/mine").queries) == 1
    assert "1 question" in result.stdout
    helped = run("leadline", "--help")
    assert helped.returncode == 0 and {"dashboard", "analyze", "summary"} <= set(helped.stdout.split())


def test_show_serves_the_dashboard_of_the_wheel(project):
    _, run = project
    code = """
import sys, urllib.request, leadline
shown = leadline.show(leadline.simulate(), runs="shown", browser=False)
again = leadline.show(leadline.simulate(), runs="shown", browser=False)
assert again.url == shown.url and again.server is shown.server
print(shown.url, urllib.request.urlopen(shown.url.split("?")[0] + "_stcore/health").read().decode())
print(shown._repr_html_())
shown.stop()
"""
    result = run("python", "-c", code)
    assert result.returncode == 0, result.stderr
    first, link = result.stdout.splitlines()
    assert first.endswith(f"/?run={simulate().run_id} ok")
    assert link == f'<a href="{first.split()[0]}" target="_blank">{first.split()[0]}</a>'


def test_show_in_the_checkout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LEADLINE_RUNS", raising=False)
    assert app_folder() == ROOT
    assert environment()["LEADLINE_RUNS"] == str(tmp_path / "runs")
    monkeypatch.setenv("LEADLINE_RUNS", str(tmp_path / "kept"))
    assert environment()["LEADLINE_RUNS"] == str(tmp_path / "kept")
    assert environment(tmp_path / "other")["LEADLINE_RUNS"] == str(tmp_path / "other")
    run = simulate()
    shown = show(run, browser=False)
    try:
        assert Run.load(tmp_path / "kept" / run.run_id).run_id == run.run_id
        assert urllib.request.urlopen(shown.url.split("?")[0] + "_stcore/health").status == 200
    finally:
        shown.stop()
