"""Natural Questions, read record by record from the hub or from files in its own schema."""

from __future__ import annotations

import glob
import os
import re
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core.errors import BackendError, InputError
from core.sources.dataset import Dataset, make_dataset, possible
from core.sources.fields import MAX_LIST, FieldError, Fields
from core.sources.question import Question, gold_spans, parse_question
from core.sources.report import IssueLog, counted, rejected_frame, shorten

HUB_NAME = "google-research-datasets/natural_questions"
SPLITS = ("train", "validation")
SHUFFLE_BUFFER = 100
MAX_PER_QUESTION = 30  # records examined for each question asked for, at most
_BUILDERS = {".jsonl": "json", ".json": "json", ".parquet": "parquet"}
# After these tags a new line begins: otherwise a heading would run into the sentence below it.
_BLOCKS = frozenset("p br div li ul ol dl dt dd tr table caption h1 h2 h3 h4 h5 h6".split())
_TAG = re.compile(r"</?\s*([a-zA-Z][a-zA-Z0-9]*)")
_OPENING = frozenset("( [ { $ £ €".split())
_CLOSING = frozenset(", . ; : ? ! ) ] } % 's 'S ’s n't 'm 're 've 'll 'd".split())
_QUOTES = {"``": '"', "''": '"'}
_WINDOWS = (6, 12, 24, 48, 96)  # tokens on either side of an answer

NO_SHORT_ANSWER = "no short answer"
YES_OR_NO = "only a yes or no"
ONLY_HTML = "a short answer made of HTML tags only"
NOT_A_RECORD = "not a record of Natural Questions"
SEEN = "an id that was there before"

Row = Mapping[str, Any]


class _Unusable(Exception):
    """Why a record is left out."""


def load_natural_questions(
    n: int = 50,
    *,
    split: str = "validation",
    seed: int | None = None,
    source: str | os.PathLike[str] | None = None,
) -> Dataset:
    """Read questions with a short answer, each with its Wikipedia page as the document.

    Records are streamed: nothing but the first records is downloaded, and nothing is kept on disk. Those
    without a short answer are left out, tags are dropped by the data set's own mask, and the first n that
    are left are returned, out of 30 records for each at most. The pipeline cuts the page into passages.

    Parameters
    ----------
    n : int
        Questions wanted, at least 1.
    split : {"validation", "train"}
        Part of the data set. A record of ``validation`` has five annotators, one of ``train`` has one.
    seed : int, optional
        Shuffle with this seed; None takes the records in their order. A stream cannot be shuffled as a
        whole: the order of its files is, and records change places within a window of 100, which have to be
        read before the first is given.
    source : path, optional
        A file, a folder or a pattern (``nq/*.parquet``) of JSON Lines or Parquet files in the data set's own
        schema; None reads ``google-research-datasets/natural_questions`` from the Hugging Face hub.

    Returns
    -------
    Dataset
        ``answers``: the distinct short answers of all annotators, each of several spans on its own.
        ``gold``: each short answer with a few words around it, so that it occurs in the page only once. The
        report's notes say how many records were examined and why others were left out.

    Raises
    ------
    InputError
        No such file, one that is no JSON Lines or Parquet, a number below 1, or no usable record.
    BackendError
        The hub cannot be reached or its data cannot be read, or there is no such split.

    Notes
    -----
    Kwiatkowski et al. 2019 (TACL 7); Wikipedia text under CC BY-SA 3.0. No LLM calls.
    """
    if n < 1:
        raise InputError(f"The number of questions must be at least 1, got {n}.")
    if split not in SPLITS:
        raise BackendError(f"Natural Questions has the splits {' and '.join(SPLITS)}, got {split!r}.")
    kept: dict[str, Question] = {}
    left_out: Counter[str] = Counter()
    with closing(_records(source, split, seed)) as rows:
        for examined, row in enumerate(rows, start=1):
            try:
                question = _question(row)
                if question.query_id in kept:
                    raise _Unusable(SEEN)
                kept[question.query_id] = question
            except _Unusable as reason:
                left_out[str(reason)] += 1
            if len(kept) >= n or examined >= MAX_PER_QUESTION * n:
                break
    return _dataset(tuple(kept.values()), n, left_out, split, source)


def _question(row: Row) -> Question:
    """Make a question of one record of the data set."""
    try:
        page = plain_page(_tokens(row["document"]["tokens"]))
        spans = _short_answers(row["annotations"], len(page.spans))
        title, text, number = row["document"]["title"], row["question"]["text"], row["id"]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise _Unusable(NOT_A_RECORD) from error
    answers = _distinct(page.piece(*span) for span in spans)
    if not answers:
        raise _Unusable(ONLY_HTML)
    fields = {
        "id": number,
        "question": text,
        "documents": [{"title": title, "text": page.text}],
        "answers": answers,
        "gold": _distinct(page.fragment(*span) for span in spans),
        "language": "en",
    }
    try:
        return parse_question(Fields(fields, strict=True), "", lambda _: ())
    except FieldError as error:
        raise _Unusable(f"{error.field}: expected {error.expected}") from error


def _tokens(tokens: Any) -> Iterator[tuple[str, bool]]:
    """Yield token and mask, from columns as the hub has them or from one object a token."""
    if isinstance(tokens, Mapping):
        pairs = zip(tokens["token"], tokens["is_html"], strict=True)
    else:
        pairs = ((token["token"], token["is_html"]) for token in tokens)  # type: ignore[assignment]
    for token, is_html in pairs:
        if not isinstance(token, str) or is_html not in (True, False):
            raise ValueError("a token must be a text with a mask")
        yield token, bool(is_html)


def _short_answers(annotations: Any, n_tokens: int) -> list[tuple[int, int]]:
    """Return the distinct token spans of all annotators' short answers."""
    spans = []
    for answer in annotations["short_answers"]:
        for first, last in zip(answer["start_token"], answer["end_token"], strict=True):
            if 0 <= first < last <= n_tokens:
                spans.append((int(first), int(last)))
    if not spans:
        yes_or_no = any(value in (0, 1, "NO", "YES") for value in annotations.get("yes_no_answer") or ())
        raise _Unusable(YES_OR_NO if yes_or_no else NO_SHORT_ANSWER)
    return list(dict.fromkeys(spans))


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(text for text in texts if text))[:MAX_LIST]


def _records(source: str | os.PathLike[str] | None, split: str, seed: int | None) -> Generator[Row]:
    """Yield the records; whatever goes wrong underneath becomes one sentence."""
    files = None if source is None else _files(source)
    try:
        import datasets
    except ImportError as error:
        raise BackendError(
            "Natural Questions needs the library datasets; install requirements.txt."
        ) from error
    if files is None:
        where, options = HUB_NAME, dict[str, Any](name="default")
    else:
        where, options = _BUILDERS[_suffix(files[0])], {"data_files": {split: files}}
    level = datasets.logging.get_verbosity()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)  # our error message says it all
    try:
        stream = datasets.load_dataset(where, split=split, streaming=True, **options)
        if seed is not None:
            stream = stream.shuffle(seed=seed, buffer_size=SHUFFLE_BUFFER)
        yield from stream
    except Exception as error:  # the library lets through whatever its readers and its network raise
        first = shorten((str(error).strip() or type(error).__name__).split("\n")[0]).rstrip(".")
        if files is not None:
            raise InputError(f"{source} cannot be read as Natural Questions: {first}.") from error
        raise BackendError(
            f"Natural Questions cannot be read from the Hugging Face hub ({first}): check the network, or "
            "give files of it as source."
        ) from error
    finally:
        datasets.logging.set_verbosity(level)


def _files(source: str | os.PathLike[str]) -> list[str]:
    pattern = os.path.join(source, "*") if Path(source).is_dir() else os.fspath(source)
    found = [str(source)] if Path(source).is_file() else sorted(glob.glob(pattern))
    files = [file for file in found if _suffix(file) in _BUILDERS]
    if not files:
        raise InputError(f"There is no .jsonl or .parquet file at {source}.")
    if len({_BUILDERS[_suffix(file)] for file in files}) > 1:
        raise InputError(f"{source} holds JSON Lines and Parquet files; give files of one kind.")
    return files


def _suffix(file: str) -> str:
    return Path(file.lower().removesuffix(".gz")).suffix


def _dataset(
    kept: tuple[Question, ...],
    n: int,
    left_out: Counter[str],
    split: str,
    source: str | os.PathLike[str] | None,
) -> Dataset:
    examined = len(kept) + left_out.total()
    why = "; ".join(f"{reason} ({count:,})" for reason, count in left_out.most_common())
    left = f"; left out: {why}" if why else ""
    note = f"{counted(examined, 'record')} examined, {len(kept):,} used{left}."
    if not kept:
        raise InputError(f"No record of Natural Questions can be used: {note}")
    notes = [note]
    if len(kept) < n:
        notes.append(f"{counted(n, 'question')} asked for, {len(kept):,} found.")
    report = replace(IssueLog().report(len(kept), rejected_frame(()), notes, possible(kept)), n_rows=examined)
    name = f"Natural Questions, {split if source is None else Path(source).stem}"
    return make_dataset(name, kept, report)


@dataclass(frozen=True, slots=True)
class PlainPage:
    """The text of a page, and where in it each token stands: None for a tag or an empty token."""

    text: str
    spans: tuple[tuple[int, int] | None, ...]

    def piece(self, first: int, last: int) -> str:
        """Return the text of the tokens ``first`` to ``last - 1`` on one line; "" where all are tags."""
        held = [span for span in self.spans[first:last] if span is not None]
        return " ".join(self.text[held[0][0] : held[-1][1]].split()) if held else ""

    def fragment(self, first: int, last: int) -> str:
        """Return a stretch of text around these tokens, wide enough to occur in the page only once.

        Six tokens on either side, then more, up to 96; what occurs twice even then is returned as it is.
        """
        places = [i for i, span in enumerate(self.spans) if span is not None]
        inside = [n for n, i in enumerate(places) if first <= i < last]
        found = ""
        for width in _WINDOWS if inside else ():
            low, high = max(0, inside[0] - width), min(len(places) - 1, inside[-1] + width)
            found = self.piece(places[low], places[high] + 1)
            if len(gold_spans(self.text, [found])) == 1:
                break
        return found


def plain_page(tokens: Iterable[tuple[str, bool]]) -> PlainPage:
    r"""Join the tokens that are not HTML tags; each comes with whether it is one.

    Words are separated by one space, none before a closing or after an opening mark; a dropped block tag
    (paragraph, heading, list item, table row …) leaves a line break.

    Examples
    --------
    >>> plain_page([("Utah", False), ("<P>", True), ("A", False), ("state", False), (".", False)]).text
    'Utah\nA state.'
    """
    parts: list[str] = []
    spans: list[tuple[int, int] | None] = []
    length, gap, glued = 0, "", True
    for token, is_html in tokens:
        word = "" if is_html else " ".join(token.split())
        if not word:
            name = _TAG.match(token) if is_html else None
            gap = "\n" if name and name[1].lower() in _BLOCKS else gap
            spans.append(None)
            continue
        before = gap or ("" if glued or word in _CLOSING or word == "''" else " ")
        before = before if length else ""
        shown = _QUOTES.get(word, word)
        parts += [before, shown]
        start = length + len(before)
        length = start + len(shown)
        spans.append((start, length))
        gap, glued = "", word in _OPENING or word == "``"
    return PlainPage("".join(parts), tuple(spans))
