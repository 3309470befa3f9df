"""The commands of the example workflow, on runs that are simulated in place of asking a model."""

import re
import shlex
from pathlib import Path

from core.cli.app import main
from core.run import Run
from core.sources.simulation import SimulationOptions, simulate

DOCUMENT = Path(__file__).parent.parent / "docs/ci.md"


def commands():
    text = DOCUMENT.read_text(encoding="utf-8")
    workflow = re.search(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL).group(1)
    return [
        shlex.split(line.split("python -m core ")[1])
        for line in workflow.split("\n")
        if "python -m core" in line
    ]


def test_the_workflow_runs_as_it_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    baseline = simulate(SimulationOptions(queries=20, passages=3))
    # The new run has every answer that is correct in the baseline replaced.
    wrong = baseline.queries.assign(answer="Nothing of the kind, 1066.", correct=None)
    baseline.save("runs/baseline")
    analyze, check, report = commands()
    assert analyze[0] == "analyze" and analyze[analyze.index("--out") + 1] == "runs/new"
    baseline.derive({"name": "Same"}).save("runs/new")
    assert main(check) == 0
    baseline.derive({"name": "Worse"}, queries=wrong).save("runs/new")
    assert main(check) == 1
    assert "is significant and larger than the 5 points allowed" in capsys.readouterr().out
    assert Path("leadline.md").read_text().startswith("### ❌") and Path("leadline.xml").stat().st_size
    assert main(report) == 0
    assert "What became worse" in Path("report.html").read_text()
    assert main(["trend", "runs"]) == 0
    assert re.search(r"2 runs, 20 questions", capsys.readouterr().out)
    assert Run.load("runs/new").name == "Worse"
