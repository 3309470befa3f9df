"""Every way by which a file that somebody else wrote comes in: good files, and what a page or a command does with them.

A line of `DOORS` for each. A further format of imported files is a line in `tests.core.sources.formats.fuzz.EXAMPLES`.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from unittest import mock

import numpy as np
import pyarrow as pa

from core import reviews
from core import run as core_run
from core.calibration.provenance import Provenance
from core.calibration.saved import Method, SavedCalibration, read_store
from core.calibration.store import CalibrationCase, CalibrationStore
from core.calibration.weighted import Weighting
from core.cli.validate import validate_answer
from core.conformal.rag import summary
from core.diagnosis import Diagnosis
from core.errors import LeadlineError
from core.llm import Completion
from core.llm.cache import CompletionCache
from core.report.compare import check_comparable, setup_in, sides_of
from core.report.paired import comparison_text
from core.report.text import summary_text
from core.reviews import Review
from core.run import RESULTS, Run
from core.sources.dataset import load_dataset, read_dataset
from core.sources.formats import FORMATS, import_file
from core.sources.formats.records import records_of
from core.sources.mapping import MAPPABLE, check_mapping, guess_columns, suggest_mapping, values_in
from core.sources.natural_questions import load_natural_questions
from core.sources.simulation import SimulationOptions, simulate
from core.validation.metrics import Observation, daily, windowed
from core.validation.store import MetricsStore
from core.whatif import versions
from core.whatif.asking import Version
from core.whatif.change import Added, Change, read_change
from core.worklist import worklist
from tests.core.sources.formats.fuzz import EXAMPLES
from tests.core.sources.test_natural_questions import record
from tests.mutations import TABLES
from tests.random_runs import random_run
from ui import files

ROOT = Path(__file__).resolve().parents[1]
NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
OURS = Provenance("length", "model", "prompt", "retriever")


@dataclass(frozen=True)
class Door:
    """``write`` puts good files into an empty folder, ``use`` opens what lies there. ``within``: what is damaged."""

    name: str
    write: Callable[[Path], object]
    use: Callable[[Path], object]
    weight: int = 1
    within: str = "*"


def each(*uses: Callable[[], object]) -> None:
    """Call all, also where one refuses; then raise the first refusal."""
    refused: list[LeadlineError] = []
    for use in uses:
        try:
            use()
        except LeadlineError as error:
            refused.append(error)
    if refused:
        raise refused[0]


def only(folder: Path) -> Path:
    """Return the one file of a folder."""
    (path,) = (one for one in folder.iterdir() if one.is_file())
    return path


# Files of other tools, and data sets.


def imported(folder: Path) -> None:
    """As the page takes an upload: as a run, else as questions, else its columns are to be named; then as `import`."""
    path = only(folder)
    data = path.read_bytes()
    try:
        found = import_file(data, path.name)
    except LeadlineError as error:
        try:
            assert str(read_dataset(data, path.name))
        except LeadlineError:
            columns = values_in(data, path.name)
            guess_columns(columns, dict.fromkeys(MAPPABLE, ""))
            with contextlib.suppress(LeadlineError):
                check_mapping(suggest_mapping(columns), columns, path.name)
            raise error from None
        return
    assert found.report.n_kept > 0 and all(map(str, found.report.issues))
    found.report.to_frame()
    run = Run.load(found.run.save(folder / "run"))
    summary_text(Diagnosis(run))
    if found.run.manifest["dataset"]["format"] in FORMATS:
        records = records_of(found.run)
        assert all(one.write is None or one.write(records) for one in FORMATS.values())


def mapped(folder: Path) -> None:
    """As the page reads a file of unknown columns once they are named."""
    path = only(folder)
    data = path.read_bytes()
    guessed = guess_columns(values_in(data, path.name), dict.fromkeys(MAPPABLE, ""))
    found = import_file(data, path.name, mapping={field: column for field, (column, _) in guessed.items()})
    summary_text(Diagnosis(found.run))


def file(name: str, content: bytes | Callable[[], bytes]) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content if isinstance(content, bytes) else content())


RAGAS = {
    "user_input": ["Who?", "What?", "Where?"],
    "retrieved_contexts": [["It was Ada.", "It was not."], ["A loom."], ["In London.", "Near it.", "No."]],
    "response": ["Ada", "A loom", "London"],
    "reference": ["Ada", "An engine", "London"],
    "faithfulness": [1.0, 0.5, None],
}
UNKNOWN = (
    "Frage,Einfluss,Platz\nWer war es?,0.5,1\nWer war es?,0.1,2\nWas ist das?,0.3,1\nWas ist das?,0.2,2\n"
)
OWN = [
    {
        "id": "a",
        "question": "Who?",
        "documents": [{"title": "Ada", "text": "It was Ada."}],
        "answers": ["Ada"],
    },
    {"id": "b", "question": "What?", "corpus": "texts", "gold": ["A loom"], "answers": ["A loom"]},
    {"id": "c", "question": "Where?", "corpus": "texts.jsonl", "kind": "place"},
]


def data_set(folder: Path) -> None:
    (folder / "texts").mkdir()
    (folder / "texts" / "loom.md").write_text("# Loom\n\nA loom weaves.\n")
    (folder / "texts" / "more.txt").write_text("London is a city.\n")
    (folder / "texts.jsonl").write_text(
        '{"title": "City", "text": "London."}\n{"title": "", "text": "Paris."}\n'
    )
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, OWN)))


def saved_by_datasets(folder: Path) -> None:
    (folder / "data-00000-of-00001.arrow").write_bytes(TABLES[b"\xff\xff\xff\xff"](pa.table(RAGAS)))
    (folder / "state.json").write_text(
        '{"_data_files": [{"filename": "data-00000-of-00001.arrow"}], "_split": null}'
    )
    (folder / "dataset_info.json").write_text("{}")


def natural_questions(folder: Path) -> None:
    records = [record(n, [[(9, 11)], [(9, 11)]], question=f"where is beaver {n}") for n in range(3)]
    (folder / "nq.jsonl").write_text("\n".join(map(json.dumps, records)))


def standard_input(folder: Path) -> None:
    given = mock.Mock(buffer=io.BytesIO(only(folder).read_bytes()))
    with mock.patch.object(sys, "stdin", given), contextlib.redirect_stdout(io.StringIO()):
        validate_answer(None, True)


ANSWER = {
    "question": "Who?",
    "answer": "It was Ada.",
    "passages": ["It was Ada.", {"text": "No."}],
    "lang": "en",
}


# Saved runs.


def random_with_calibration() -> Run:
    """A run that has something of everything, and keeps a calibration."""
    run = random_run(0, 4, 3)
    steps = {name: dict(step) for name, step in run.manifest["steps"].items()}
    method = Method(Weighting({"similarity": 0.5, "llm": 0.5}), learned_from=frozenset({"0123456789"}))
    kept = SavedCalibration(
        "a.db", OURS, np.array([0.1, 0.4, 0.9]), np.array([1.0, 1.0, 0.0]), ("one", None, "two"), 0, method
    )
    steps["conformal"]["options"] = {"calibration": kept.to_json()}
    return Run(MappingProxyType({**run.manifest, "steps": steps, "cost": {"calls": 3.0}}), run.tables)


def recorded(folder: Path) -> None:
    with mock.patch.object(core_run, "LARGE", 1_000):  # else the sample is kept beside the run
        Run.sample(ROOT / "sample_data/recorded_run_facts", 3).save(folder)


def shown(folder: Path) -> None:
    diagnosis = Diagnosis(Run.open(folder))
    summary_text(diagnosis)
    assert json.dumps(diagnosis.summary(), allow_nan=False)
    worklist(diagnosis)
    for one in diagnosis.diagnostics:
        diagnosis.recovered(one.name)
    setup_in(diagnosis.run.manifest)
    assert 0 <= diagnosis.run.sampling_error < 1


def opened(folder: Path) -> None:
    each(lambda: shown(folder), lambda: list(map(len, Run.sample(folder, 2).tables.values())))


def with_results(folder: Path) -> None:
    random_with_calibration().save(folder)
    opened(folder)


def compared(folder: Path) -> None:
    runs = [Run.load(folder.parent / "seeds/run of chance"), Run.load(folder)]
    check_comparable(runs)
    comparison_text(sides_of([*map(Diagnosis, runs)]))


# Stores.


def calibration(folder: Path) -> None:
    method = Method(Weighting({"similarity": 0.5, "llm": 0.5}))
    cases = [
        CalibrationCase(
            f"Question {n}?", "A text.", "Ada", "Ada", n / 20, n % 3 > 0, "one" if n % 2 else None
        )
        for n in range(20)
    ]
    with CalibrationStore(folder / "scores.db") as store:
        store.add(cases, OURS, method=json.dumps(method.to_json()))
        store.exclude([3], "A wrong reference.")


def calibration_used(folder: Path) -> None:
    path = only(folder)

    def added() -> None:
        with CalibrationStore(path, OURS) as store:
            store.add([CalibrationCase("New?", "A text.", "a", "b", 0.3, False)], OURS)
            store.exclude([1], "Odd.")
            store.include([1])
            summary(store, 0.1)
            store.frame()

    each(lambda: looked_at(files.STORES, path), lambda: read_store(str(path)), added)


def looked_at(kind: str, path: Path) -> None:
    """Look whether a file is a store of ours, as the page does before it offers one."""
    runs = path.parent / "runs"
    (runs / kind).mkdir(parents=True)
    shutil.copy(path, runs / kind / "one.db")
    with mock.patch.dict(os.environ, LEADLINE_RUNS=str(runs)):
        files.path_of(kind, "one")


SAID = {"q1": Review("reviewed", "Fine.", correct=True), "r001": Review("flagged", "No.", correct=False)}


def reviewed(folder: Path) -> None:
    for person in ("Ada", "Ben"):
        reviews.write_all(folder, "run", SAID, person=person)
    path = reviews.path_of(folder, "run")
    path.write_text(json.dumps({"run_id": "run", "reviews": {q: asdict(one) for q, one in SAID.items()}}))


def reviews_used(folder: Path) -> None:
    run = random_run(0, 3, 2)
    each(
        lambda: reviews.combined(reviews.read_all(folder, "run")),
        lambda: reviews.labelled(run, reviews.read_all(folder, "run")),
        lambda: reviews.write_all(
            folder, "run", {"q2": Review("reviewed", "Later.")}, {"q2": Review()}, "Ada"
        ),
        lambda: reviews.read(folder, "run", "Ada"),
    )


def completions(folder: Path) -> None:
    with CompletionCache(folder / "completions.db") as cache:
        for n in range(20):
            cache.put(f"key {n}", Completion(f"Answer {n}", "stop", 3, 2, 0.1, (-0.5, -0.25)), "model")


def cache_used(folder: Path) -> None:
    with CompletionCache(only(folder)) as cache:
        keys = [f"key {n}" for n in range(30)]
        for one in cache.get_many(keys).values():
            assert isinstance(one.text, str)
        for key in keys:
            cache.put(key, Completion("Again", "stop", 1, 1, 0.1), "model")
        cache.get_many(keys)
        assert len(cache) >= 0 and cache.notes is not None


def observations(folder: Path) -> None:
    with MetricsStore(folder / "metrics.db") as store:
        hour = timedelta(hours=1)
        store.add(
            Observation(
                NOW - n * hour,
                n % 2 == 0,
                n % 5 == 0,
                n / 20,
                None if n % 3 else 0.5,
                False,
                n > 9,
                (),
                f"k{n}",
            )
            for n in range(20)
        )


def metrics_used(folder: Path) -> None:
    path = only(folder)

    def read() -> None:
        with MetricsStore(path) as store:
            store.lacking(["k1", "new"])
            seen = store.between(NOW - timedelta(days=30), NOW)
            windowed(seen, NOW)
            daily(seen, NOW, 7)
            store.add([Observation(NOW, True, False, 0.9, 0.5, False, False, (), "new")])

    each(lambda: looked_at(files.METRICS, path), read)


CHANGE = Change(
    edits={"p1": "Another text."},
    order=("p2", "p1"),
    added=(Added("x", "New.", "Title"),),
    question="Who else?",
)


def change_used(folder: Path) -> None:
    change = read_change(only(folder).read_bytes().decode(errors="replace"))
    assert read_change(change.to_json()) == change


def asked(folder: Path) -> None:
    one = Version("q1", CHANGE, "Edited p1.", "model", "Ada", "Ben", "answered", "correct", ("Ben",), ("correct",), ("Ada",),
                  ("incorrect",), (("It was Ben.", 0.5), ("No.", None)), "", 12)  # fmt: skip
    versions.add(folder, "run", [one])


def versions_used(folder: Path) -> None:
    for one in versions.read(folder, "run"):
        assert one.to_dict()
    versions.add(folder, "run", [])


_IMPORTS: Mapping[str, bytes | Callable[[], bytes]] = {
    **EXAMPLES,
    "ragas.parquet": lambda: TABLES[b"PAR1"](pa.table(RAGAS)),
    "ragas.arrow": lambda: TABLES[b"ARROW1"](pa.table(RAGAS)),
    "ragas-stream.arrow": lambda: TABLES[b"\xff\xff\xff\xff"](pa.table(RAGAS)),
    "influence.csv.gz": lambda: gzip.compress(EXAMPLES["influence.csv"], mtime=0),
    "ragas-dataset.jsonl.gz": lambda: gzip.compress(EXAMPLES["ragas-dataset.jsonl"], mtime=0),
    "influence.tsv": lambda: EXAMPLES["influence.csv"].replace(b",", b"\t"),
}
DOORS: tuple[Door, ...] = (
    *(Door(f"import of {name}", file(name, content), imported) for name, content in _IMPORTS.items()),
    Door("import with named columns", file("own.csv", UNKNOWN.encode()), mapped, 2),
    Door(
        "list of prompts",
        file("prompts.txt", b"Who?\nWhat?\nWhere?\n"),
        lambda folder: load_dataset(only(folder), documents=()),
    ),
    Door("import of a saved data set", saved_by_datasets, lambda folder: import_file(folder), 2),
    Door("data set", data_set, lambda folder: load_dataset(folder / "questions.jsonl"), 3),
    Door(
        "corpus",
        data_set,
        lambda folder: load_dataset(folder / "questions.jsonl", folder / "texts.jsonl"),
        1,
    ),
    Door(
        "Natural Questions",
        natural_questions,
        lambda folder: load_natural_questions(3, source=only(folder)),
        2,
    ),
    Door("standard input of validate", file("answer.json", json.dumps(ANSWER).encode()), standard_input, 2),
    Door("run of chance", lambda folder: random_with_calibration().save(folder), opened, 8),
    Door("recorded run", recorded, opened, 4),
    Door("simulated run", lambda folder: simulate(SimulationOptions(queries=10)).save(folder), opened),
    Door("run beside another", lambda folder: random_with_calibration().save(folder), compared, 2),
    Door("results of a run", with_results, opened, 4, f"{RESULTS}/**/*"),
    Door("calibration store", calibration, calibration_used, 6),
    Door("reviews", reviewed, reviews_used, 6, "reviews/*"),
    Door("completion cache", completions, cache_used, 4),
    Door("metrics store", observations, metrics_used, 4),
    Door("change of a question", file("change.json", lambda: CHANGE.to_json().encode()), change_used, 2),
    Door("versions of questions", asked, versions_used, 3, "versions/*"),
)


def write_seeds(folder: Path) -> None:
    """Write the good files of every door."""
    for door in DOORS:
        place = folder / door.name
        place.mkdir(parents=True)
        door.write(place)


def prepare(folder: Path) -> None:
    """Make this process one that opens files of others: caches of its own, and every run kept as a large one."""
    os.environ |= {"LEADLINE_CACHE": str(folder / "cache"), "LEADLINE_RUNS": str(folder / "runs")}
    core_run.LARGE = 2
