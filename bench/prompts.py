"""How the packaged model answers: with and without a word first, and with its turn begun in other words.

Run from the repository root: ``PYTHONPATH=. python bench/prompts.py [--data FOLDER] [--questions N]``. Reads
100 Natural Questions (lower case, no question mark) with ten and with five passages each, the gold passage
among them, and the questions of the sample with the passages of the recorded run. The same prompt for all but
the beginning of the model's own turn; greedy, 24 tokens, up to the first line break. All questions take hours
on two cores; ``--questions`` takes that many of each set, evenly.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core.llm.embedded.decoding import has_word
from core.llm.embedded.llm import EmbeddedLLM
from core.llm.prompts import DEFAULT_STYLE, NumberedPassage, answer_messages, prompt_style
from core.llm.types import Request
from core.run import Run
from core.stats import wilson_interval
from core.text.abstention import answer_status
from core.text.matching import is_correct

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
FILE = "nq_10p_dev.jsonl"
# How the model's own turn begins.
BEGINNINGS = ("Answer:", "Short answer:")
# The rule of a word first, with one mark before it, changes no answer that reads like this.
_COMPLETE = re.compile(r"\W?\w(?!.*:\s*$)")


@dataclass(frozen=True, slots=True)
class Item:
    """A question with its passages and reference answers."""

    question: str
    passages: list[NumberedPassage]
    answers: list[str]


def natural_questions(path: Path, k: int) -> Iterator[Item]:
    """Read questions with the gold passage and the best-ranked others, in the order of the file."""
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        gold = entry["gold_index"]
        others = [i for i in range(len(entry["passages"])) if i != gold][: k - 1]
        chosen = [entry["passages"][i] for i in sorted([gold, *others])]
        passages = [(n, one["title"], one["text"]) for n, one in enumerate(chosen, 1)]
        yield Item(entry["question"], passages, entry["answers"])


def sample() -> Iterator[Item]:
    """Read the recorded run's questions and passages."""
    run = Run.load(ROOT / "sample_data" / "recorded_run")
    passages = {key: rows.sort_values("retrieval_rank") for key, rows in run["passages"].groupby("query_id")}
    for row in run.queries.itertuples():
        found = passages[row.query_id]
        numbered = list(zip(range(1, len(found) + 1), found["title"].fillna(""), found["text"], strict=True))
        yield Item(
            row.question, numbered, [] if row.reference_answers is None else list(row.reference_answers)
        )


def some(items: Sequence[Item], n: int) -> list[Item]:
    """Choose n items evenly."""
    n = min(n, len(items))
    return [items[i * len(items) // n] for i in range(n)]


def answers(llm: EmbeddedLLM, items: Sequence[Item], begin: str) -> list[str]:
    """Ask every question."""
    stop = prompt_style(DEFAULT_STYLE).stop
    found = []
    for item in items:
        *turns, last = answer_messages(item.question, item.passages)
        request = Request((*turns, replace(last, content=begin)), stop=stop)
        found.append(llm.generate([request])[0].text)
    return found


def with_word(llm: EmbeddedLLM, items: Sequence[Item], begin: str, texts: Sequence[str]) -> list[str]:
    """Ask again, with the rule of a word first, where it can make a difference."""
    again = {i for i, text in enumerate(texts) if not _COMPLETE.match(text.strip())}
    llm.word_first = True
    return [answers(llm, [items[i]], begin)[0] if i in again else text for i, text in enumerate(texts)]


def line(name: str, items: Sequence[Item], texts: Sequence[str]) -> str:
    """Count the empty, abstaining and correct answers; one that is missing is not correct."""
    empty = sum(not has_word(text) for text in texts)
    abstained = sum(answer_status(text) == "abstained" for text in texts)
    judged = [(item, text) for item, text in zip(items, texts, strict=True) if item.answers]
    correct = sum(is_correct(text, item.answers) is True for item, text in judged)
    low, high = wilson_interval(correct / len(judged), len(judged))
    words = sum(len(text.split()) for text in texts) / len(texts)
    return (
        f"  {name:28} empty {empty:3d}, abstained {abstained:3d} of {len(texts)}; correct {correct:3d} of "
        f"{len(judged)} (95 % interval {100 * low:.0f} to {100 * high:.0f} %); {words:.1f} words"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: only whether it runs")
    options = parser.parse_args()
    n = 1 if options.smoke else options.questions
    sets = {"sample, ten passages": list(sample())}
    path = options.data / FILE
    if path.is_file():
        for k in (5, 10):
            sets[f"Natural Questions, {k} passages"] = list(natural_questions(path, k))
    else:
        print(f"The Natural Questions are not here ({path}); --data names a folder. The sample only:")
    llm = EmbeddedLLM()
    for title, items in sets.items():
        chosen = some(items, n)
        print(f"{title}: {len(chosen)} of {len(items)} questions, {llm.name} in {llm.options['dtype']}")
        for begin in BEGINNINGS:
            llm.word_first = False
            texts = answers(llm, chosen, begin)
            print(line(f"{begin} free", chosen, texts), flush=True)
            print(line(f"{begin} a word first", chosen, with_word(llm, chosen, begin, texts)), flush=True)


if __name__ == "__main__":
    main()
