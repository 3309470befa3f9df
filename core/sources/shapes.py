"""Data sets for reading comprehension in their own form, as questions in ours: SQuAD, HotpotQA."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.sources.content import Content
from core.sources.fields import FieldError, Rejected, read_each, with_cells
from core.sources.question import Document
from core.sources.report import IssueLog

_WORDS = 3
_SQUAD, _HOTPOT = "SQuAD", "HotpotQA"
_CELLS = ("context", "answers", "supporting_facts")
Entry = tuple[int, Any]


@dataclass(frozen=True, slots=True)
class Given:
    """The records of a data set file in our own schema, and what the file says beside them.

    ``corpora`` are documents that records name by their ``corpus``; ``rejected`` as in `read_each`.
    """

    content: Content
    corpora: Mapping[str, tuple[Document, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    rejected: Sequence[Rejected] = ()


def given_by(
    content: Content,
    entries: Iterable[Entry],
    corpora: Mapping[str, tuple[Document, ...]],
    notes: Iterable[str],
    rejected: Any,
) -> Given:
    """Return the records that were made of a file in another schema."""
    own = replace(content, kind="json", value=None, entries=tuple(entries), columns=(), table=None)
    return Given(own, corpora, tuple(notes), rejected)


def shape_of(content: Content) -> str | None:
    """Return the name of the data set whose form a file has, or None."""
    value = content.value
    if isinstance(value, Mapping) and isinstance(value.get("data"), list):
        articles = [article for article in value["data"][:50] if isinstance(article, Mapping)]
        if any(isinstance(article.get("paragraphs"), list) for article in articles):
            return _SQUAD
    for entry in (_cells(content, entry) for _, entry in content.opened().entries[:50]):
        if isinstance(entry, Mapping) and "question" in entry:
            if isinstance(entry.get("context"), str) and _spans(entry.get("answers")) is not None:
                return _SQUAD
            if _titled(entry.get("context")) is not None:
                return _HOTPOT
    return None


def reshaped(content: Content, log: IssueLog) -> Given | None:
    """Return the questions of a file in one of these forms; None where it has none of them."""
    name = shape_of(content)
    return None if name is None else (_squad if name == _SQUAD else _hotpot)(content, log)


def _cells(content: Content, entry: Any) -> Any:
    return with_cells(entry, _CELLS) if content.kind == "csv" else entry


def _squad(content: Content, log: IssueLog) -> Given:
    """Read SQuAD, version 1 or 2: a question's documents are the paragraphs of its article."""
    found, rejected = read_each(_questions(content), log, lambda n, question: (n, _with_article(question)))
    paragraphs: dict[str, dict[str, None]] = {}
    for _, question in found:
        paragraphs.setdefault(question["corpus"], {})[question["context"]] = None
    corpora = {
        key: tuple(Document(key if key not in texts else "", text) for text in texts)
        for key, texts in paragraphs.items()
    }
    whole = {key: "\n".join(texts) for key, texts in paragraphs.items()}
    entries = [(number, _asked(number, q, whole[q["corpus"]], log)) for number, q in found]
    return given_by(content, entries, corpora, [f"Read as {_SQUAD}."], rejected)


def _questions(content: Content) -> Iterator[Entry]:
    """Yield every question, numbered as in the file, with the title and the paragraph around it."""
    articles = content.value.get("data") if isinstance(content.value, Mapping) else None
    if not isinstance(articles, list):
        yield from ((number, _cells(content, entry)) for number, entry in content.opened().entries)
        return
    number = 0
    paragraphs = [pair for article in articles for pair in _inside(article, "title", "paragraphs")]
    for title, paragraph in paragraphs:
        for context, question in _inside(paragraph, "context", "qas"):
            number += 1
            around = {"title": title, "context": context}
            yield number, {**question, **around} if isinstance(question, Mapping) else question


def _inside(entry: Any, name: str, held: str) -> list[tuple[Any, Any]]:
    """Return the value of a name beside each entry of a list; None for a list that is not there."""
    whole = entry if isinstance(entry, Mapping) else {}
    entries = whole.get(held)
    return [(whole.get(name), one) for one in (entries if isinstance(entries, list) else [None])]


def _with_article(question: Any) -> dict[str, Any]:
    if not isinstance(question, Mapping):
        raise FieldError("qas", question, "a list of questions, each with question, id and answers")
    title, context = question.get("title"), question.get("context")
    if not isinstance(context, str) or not context.strip():
        raise FieldError("context", context, "the paragraph that the question is about")
    return {**question, "corpus": (title.strip() if isinstance(title, str) else "") or context}


def _asked(number: int, question: Mapping[str, Any], article: str, log: IssueLog) -> dict[str, Any]:
    spans = _spans(question.get("answers"))
    if spans is None:
        log.add(number, "answers", question.get("answers"), "answers with text and answer_start", "warning")
    gold = {_fragment(question["context"], article, text, start) for text, start in spans or ()}
    if None in gold:
        log.add(number, "answers", spans, "texts that stand in the paragraph", "warning")
    none = question.get("is_impossible") is True or not spans
    return {
        **{k: v for k, v in question.items() if k not in ("is_impossible", "context", "title")},
        "answers": list(dict.fromkeys(text for text, _ in spans or ())),
        "gold": sorted(text for text in gold if text is not None),
        **({"kind": "unanswerable"} if none else {}),
    }


def _spans(answers: object) -> list[tuple[str, Any]] | None:
    """Return text and start of every answer, from a list of objects or from lists in one object."""
    if isinstance(answers, Mapping):
        texts, starts = answers.get("text"), answers.get("answer_start")
        if not isinstance(texts, list):
            return None
        starts = starts if isinstance(starts, list) and len(starts) == len(texts) else [None] * len(texts)
        return [(t, s) for t, s in zip(texts, starts, strict=True) if isinstance(t, str) and t.strip()]
    if not isinstance(answers, list) or not all(isinstance(a, Mapping) and "text" in a for a in answers):
        return None
    pairs = ((answer["text"], answer.get("answer_start")) for answer in answers)
    return [(text, start) for text, start in pairs if isinstance(text, str) and text.strip()]


def _fragment(context: str, article: str, text: str, start: Any) -> str | None:
    """Return an answer with as many words around it as it takes to stand in the article only once."""
    whole = isinstance(start, int) and not isinstance(start, bool) and start >= 0
    first = start if whole and context.startswith(text, start) else context.find(text)
    if first < 0:
        return None
    before, after = context[:first].split(" "), context[first + len(text) :].split(" ")
    for n in range(_WORDS, max(len(before), len(after)) + _WORDS, _WORDS):
        fragment = " ".join(before[-n:]) + text + " ".join(after[:n])
        if article.count(fragment) == 1:
            return fragment.strip()
    return context.strip()


def _hotpot(content: Content, log: IssueLog) -> Given:
    """Read HotpotQA: the paragraphs in the file's order are the passages, the supporting ones are gold."""
    entries, rejected = read_each(content.opened().entries, log, lambda n, e: (n, _hops(_cells(content, e))))
    return given_by(content, entries, {}, [f"Read as {_HOTPOT}."], rejected)


def _hops(entry: Any) -> dict[str, Any]:
    paragraphs = _titled(entry.get("context")) if isinstance(entry, Mapping) else None
    if paragraphs is None:
        raise FieldError("context", entry, "a list of paragraphs, each a title with its sentences")
    facts = entry.get("supporting_facts")
    if isinstance(facts, Mapping):
        facts = [[title] for title in facts.get("title") or ()]
    titles = {f[0] for f in facts if isinstance(f, list) and f and isinstance(f[0], str)} if facts else set()
    answer = entry.get("answer")
    used = ("context", "supporting_facts", "answer", "_id", "type")
    return {
        **{name: value for name, value in entry.items() if name not in used},
        "id": entry.get("_id") or entry.get("id"),
        "kind": entry.get("type"),
        "answers": [answer] if answer is not None else [],
        "passages": [
            {"title": title, "text": text, **({"is_gold": title in titles} if titles else {})}
            for title, text in paragraphs
        ],
    }


def _titled(context: object) -> list[tuple[str, str]] | None:
    """Return title and text of every paragraph, from pairs or from lists in one object."""
    if isinstance(context, Mapping):
        titles, sentences = context.get("title"), context.get("sentences")
        if not isinstance(titles, list) or not isinstance(sentences, list) or len(titles) != len(sentences):
            return None
        context = [list(pair) for pair in zip(titles, sentences, strict=True)]
    if not isinstance(context, list) or not context:
        return None
    found = []
    for pair in context:
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)):
            return None
        if not isinstance(pair[1], list) or not all(isinstance(sentence, str) for sentence in pair[1]):
            return None
        parts = pair[1]
        # The first data set keeps the spaces between sentences, others that copy its form do not.
        text = ("" if any(s[:1].isspace() or not s for s in parts[1:]) else " ").join(parts)
        found.append((pair[0], text.strip()))
    return found
