"""Split an answer into claims by rules: no model, the same claims every time."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import replace

import regex

from core.claims.decomposition.clauses import clause_spans
from core.claims.decomposition.relevance import is_relevant
from core.claims.types import Claim
from core.text.abstention import is_abstention
from core.text.citations import NAMED
from core.text.sentences import BULLET, CITATION, Span, sentence_spans, trimmed
from core.text.words import has_words, words

_NAMED = rf"{NAMED}|\[citation needed\]"
_CITED = regex.compile(rf"\s?(?:{CITATION}|{_NAMED})", regex.IGNORECASE)
_CITED_INSIDE = regex.compile(rf"\s?(?:{CITATION}|{_NAMED})(?=[\p{{L}}\p{{N}}])", regex.IGNORECASE)
_CITED_LAST = regex.compile(rf"(?:\s*(?:{CITATION}|{_NAMED}))+$", regex.IGNORECASE)
_ITEM = regex.compile(rf"(?:{BULLET})+")
_HEADING = regex.compile(r"#{1,6}\s")
# Markdown marks come in pairs and not next to a letter: 2*3*4 and snake_case are left alone, and taking marks
# off joins no words. Ideographs are words of their own.
_APART = r"[^\P{L}\p{Han}]|[\p{N}\p{M}]"
_LINK = regex.compile(
    rf"(?<!{_APART})!?\[([^\[\]\n]{{1,300}})\]\((?:https?://|/|#)[^\s()]{{0,2000}}\)(?!{_APART})"
)
_EMPHASIS = regex.compile(
    rf"(?<!{_APART}|[*_`])(?:(?P<star>\*{{1,3}})(?=\S)(?P<a>[^*\n]+)(?<=\S)(?P=star)"
    r"|(?P<line>_{1,3})(?=\S)(?P<b>[^_\n]+)(?<=\S)(?P=line)|(?P<tick>`+)(?P<c>[^`\n]+)(?P=tick))"
    rf"(?!{_APART}|[*_`])"
)
_LEAD = regex.compile(
    r"""
    (?: (?:however|in\s+addition|additionally|moreover|furthermore|therefore|thus|hence|also|besides
        |consequently|nevertheless|nonetheless|finally|lastly|first(?:ly)?|second(?:ly)?|third(?:ly)?|next|then|overall|similarly
        |likewise
        |specifically|notably|in\s+(?:fact|summary|conclusion|short|other\s+words|contrast|turn)
        |for\s+(?:example|instance)|as\s+a\s+result|on\s+the\s+(?:other|one)\s+hand|by\s+contrast|to\s+summari[sz]e
        |accordingly|indeed|of\s+course|sure|certainly|that\s+said|still|what\s+is\s+more|interestingly|importantly
        |(?:(?:based\s+on|according\s+to|from|given|as\s+stated\s+in|as\s+per)\s+
          (?:(?:the|these|this|your|above|provided|given|available|retrieved)\s+)*
          (?:passages?|documents?|contexts?|texts?|sources?|information|excerpts?)
          (?:\s+(?:provided|given|above|available|\d{1,3}(?:\s+and\s+\d{1,3})?))*)
        |tuy\s+nhiên|ngoài\s+ra|thêm\s+vào\s+đó|hơn\s+nữa|bên\s+cạnh\s+đó|do\s+đó|vì\s+vậy|vì\s+thế|như\s+vậy
        |cuối\s+cùng|đầu\s+tiên
        |ví\s+dụ|chẳng\s+hạn|mặt\s+khác|tóm\s+lại|nói\s+cách\s+khác|đặc\s+biệt|thật\s+vậy|trước\s+hết|đồng\s+thời
        |(?:dựa\s+(?:trên|vào|theo)|theo|căn\s+cứ\s+vào)\s+(?:(?:các|những|nội\s+dung)\s+)*
          (?:đoạn\s+văn|tài\s+liệu|văn\s+bản|ngữ\s+cảnh)
          (?:\s+(?:được|đã|cung\s+cấp|cho|ở|trên|này|\d{1,3}))*
        |但是|但|然而|不过|不過|此外|另外|而且|并且|並且|因此|所以|于是|於是|同时|同時|例如|比如|首先|其次
        |最后|最後|总之|總之|其实|其實|事实上|事實上|也就是说
        |(?:根据|根據|基于|基於|依据|依據)(?:以上|上述|所)?(?:提供|给出|給出|给定|給定|检索到)?的?
          (?:段落|资料|資料|文档|文件|上下文|信息|資訊|文章|文本|材料)\s*\d*(?:中)?(?:的(?:内容|信息|資訊))?
      )\s*[,，、]\s*
    | (?:the\s+)?(?:final\s+|short\s+)?answer\s*[:：]\s*
    | (?:câu\s+)?trả\s+lời\s*[:：]\s* | đáp\s+án\s*[:：]\s* | (?:答案|回答|答)\s*[:：]\s*
    | (?:and|but)\s+(?=(?:he|she|it|they|we|this|that|these|those|there|the|his|her|its|their)\s)
    | (?:nhưng|và)\s+(?=(?:ông|bà|nó|họ|đây|đó)\s)
    )""",
    regex.VERBOSE | regex.IGNORECASE,
)
_LEADS = 3  # "However, in fact, according to the passages, …"
_LAST = 200  # characters at the end that are searched for citations
_SYMBOLS = regex.compile(r"[%‰°$€£¥₫<>=≠≤≥±+]|(?<![\p{L}\p{N}])[-−](?=\d)")
_TRAILING = " \t\r\n,;，；、"


def split_claims(answer: str) -> tuple[Claim, ...]:
    """Split an answer into its claims, by rules for English, Vietnamese and Chinese.

    One claim for each sentence, or for each clause of it where every clause is a whole statement; where
    that is not clear the sentence stays whole. Connectives in front ("However,"), list marks, emphasis and
    citations are no part of a claim's text.

    Parameters
    ----------
    answer : str
        The answer; a word, number or phrase is one claim.

    Returns
    -------
    tuple of Claim
        In order of first mention; claims of the same words are one, with all their spans. Refusals,
        greetings, headings and talk about the answer are claims that are not relevant; a mere refusal is
        one such claim, an answer that refuses and then states something is split. Nothing where there is
        no word.

    Examples
    --------
    >>> [c.text for c in split_claims("However, Ulm is a city [1]; it lies on the Danube.")]
    ['Ulm is a city', 'it lies on the Danube.']
    >>> split_claims("I don't know.")
    (Claim(text="I don't know.", spans=((0, 13),), relevant=False, added=(), dropped=()),)
    """
    return merged(claim for _, claims in sentence_claims(answer) for claim in claims)


def sentence_claims(answer: str) -> list[tuple[Span, tuple[Claim, ...]]]:
    """Return every sentence that has a claim, with its claims; duplicates are not merged yet."""
    found = [(span, claims) for span in sentence_spans(answer) if (claims := _claims_of(answer, span))]
    refused = is_abstention(answer) and not any(claim.relevant for _, claims in found for claim in claims)
    if not refused:
        return found
    start, end = trimmed(answer, 0, len(answer))
    return [((start, end), (Claim(" ".join(answer.split()), ((start, end),), relevant=False),))]


def merged(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """Merge claims with the same words: the first, with the spans of all."""
    alike: dict[tuple[str, ...], list[Claim]] = {}
    for claim in claims:
        key = (*words(claim.text), "", *_SYMBOLS.findall(claim.text))
        alike.setdefault(key, []).append(claim)
    return tuple(
        replace(
            same[0],
            spans=tuple(sorted({span for claim in same for span in claim.spans})),
            relevant=any(claim.relevant for claim in same),
        )
        for same in alike.values()
    )


def plain(text: str) -> str:
    """Return a statement without list marks, emphasis, citations and the connective in front of it."""
    start, end = _core(text, 0, len(text))
    return _clean(text[start:end])


def without_citations(text: str) -> str:
    """Return a text with blanks in place of citations: every other character stays where it is."""
    return _CITED.sub(lambda match: " " * len(match[0]), text)


def _claims_of(answer: str, span: Span) -> tuple[Claim, ...]:
    start, end = _core(answer, *span)
    # A heading is no statement, unless it is all there is.
    heading = bool(_HEADING.match(answer, *span)) and bool(answer[span[1] :].strip())
    parts = (_core(answer, start + a, start + b) for a, b in clause_spans(answer[start:end]))
    claims = [claim for part in parts if (claim := _claim(answer, part, heading))]
    if len(claims) > 1 and any(claim.relevant for claim in claims):
        return tuple(claims)
    whole = _claim(answer, (start, end), heading)
    return (whole,) if whole else ()


def _claim(answer: str, span: Span, heading: bool) -> Claim | None:
    text = _clean(answer[slice(*span)])
    return Claim(text, (span,), relevant=not heading and is_relevant(text)) if has_words(text) else None


def _core(text: str, start: int, end: int) -> Span:
    """Narrow a span to the statement in it."""
    start, end = trimmed(text, start, end)
    while (cited := _CITED.match(text, start, end)) and has_words(text[cited.end() : end]):
        start, end = trimmed(text, cited.end(), end)
    item = _ITEM.match(text, start, end)
    if item and has_words(_clean(text[item.end() : end])):
        start = item.end()
    for _ in range(_LEADS):
        lead = _LEAD.match(text, start, end)
        if lead is None or not has_words(_clean(text[lead.end() : end])):
            break
        start = lead.end()
    cited = _CITED_LAST.search(text, max(start, end - _LAST), end)
    if cited and cited.start() > start:
        end = cited.start()
    piece = text[start:end].rstrip(_TRAILING + "|")
    return trimmed(text, start, start + len(piece))


def _clean(text: str) -> str:
    # White space first: what follows must not read a long run of it again and again.
    text = _LINK.sub(r"\1", " ".join(text.split()))
    text = _CITED.sub("", _CITED_INSIDE.sub(" ", text))
    for _ in range(3):  # outer marks first: **_both_**
        text = _EMPHASIS.sub(lambda match: match["a"] or match["b"] or match["c"], text)
    text = regex.sub(r"^\*{2,3}(?=\S)|(?<=\S)\*{2,3}$", "", text)
    return unicodedata.normalize("NFC", " ".join(text.split()))
