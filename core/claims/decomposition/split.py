"""Split an answer into claims by rules: no model, the same claims every time."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import replace

import regex

from core.claims.types import Claim
from core.text.abstention import is_abstention
from core.text.folding import folded
from core.text.prose import NAMED
from core.text.sentences import BULLET, CITATION, Span, inside_brackets, sentence_spans, trimmed
from core.text.words import ENGLISH, has_words, pattern, words

_META = pattern("no_statement")
_QUESTION = regex.compile(r"[?？][?!？！*_)）\s]*$")
_ANNOUNCES = regex.compile(r"[:：][*_\s]*$")
_FRONT = regex.compile(r"^[\s*_#>\"'“”‘’(\[（「『-]+")
# What is left of a sentence that was cut off; "no", "both" and "one" may be answers.
_LOOSE = frozenset(
    "a an and are as at but by for he in is it its of on or she so that the they this to was were which "
    "with".split()
)
_HEAD = 400  # longer texts say more than "I hope this helps"


def is_relevant(text: str) -> bool:
    """Tell whether a claim or sentence states something that evidence could support.

    Not so: refusals, greetings, questions, talk about the answer, the model or the passages as such, what
    only announces what comes next (a colon at its end), loose little words, and text without a word.

    >>> [is_relevant(t) for t in ("Paris", "I hope this helps!", "以下是答案：", "Bạn muốn hỏi gì?")]
    [True, False, False, False]
    """
    found = words(text)
    # A letter by itself is an answer to choose from.
    is_loose = _LOOSE.issuperset(found) and found != ["a"]
    is_question = _QUESTION.search(text) and not _is_title(text)
    if is_loose or is_question or is_abstention(text) or _ANNOUNCES.search(text):
        return False
    head = _FRONT.sub("", folded(text)).strip()
    return len(head) > _HEAD or not _META.match(head)


def _is_title(text: str) -> bool:
    """Tell whether a question is a name, as of a film: every word of weight has a capital letter."""
    found = regex.findall(r"[\p{L}\p{M}]+", text)
    heavy = [word for word in found if len(word) > 3 and word.casefold() not in ENGLISH]
    return len(words(text)) >= 3 and len(heavy) >= 2 and all(word[0].isupper() for word in heavy)


_LONGEST = 2_000  # characters; what is longer is no sentence anyone wrote, but a list or a text without stops
_FLAGS = regex.VERBOSE | regex.IGNORECASE
_JOINT = regex.compile(
    r"""
    \s*;\s+(?:(?:and|but|yet|nhưng|còn|và|song)\s+)?
    | \s*,\s+(?P<vi_and>và)\s+
    | \s*,\s+(?:and|but|yet|so|whereas|nhưng|còn|song)\s+
    | \s+(?P<bare>but|nhưng)\s+
    | \s*[，,]\s*(?P<zh>而且|而|但是|但|不过|不過|然而|并且|並且|可是)
    """,
    _FLAGS,
)

# Verbs that are hardly ever participles or nouns: seeing one after a noun tells a whole statement.
_FINITE = (
    r"(?:is|are|was|were|has|have|had|can|could|will|would|may|might|must|should|does|did|do|cannot|isn't|wasn't|aren't"
    r"|weren't|became|becomes|began|begins|wrote|went|took|fell|grew|gave|died|dies|remains|remained|contains|consists"
    r"|includes|lies|belongs|came|comes|knew|saw)"
)
# Small letters: with a capital inside a sentence, "You" is the beginning of a title.
_PERSON = r"(?:he|she|it|they|we|you)"
_EN_LEFT = regex.compile(
    rf"\b(?:{_FINITE}|\w{{2,}}ed|won|met|led|made|held|built|ran|left|lost|found|sold|{_PERSON})\b", _FLAGS
)
_EN_RIGHT = regex.compile(
    rf"""
    (?-i:{_PERSON}|I)(?:'s|'re|'d|'ll|'ve)?\s+\p{{L}}{{2,}}
    | (?:there|this|these|those|the|an?|his|her|its|their|our|one|two|three|both|some|many|most|all
       |each|other|others|(?-i:\p{{Lu}})[\w'’.-]*)
      (?:\s+(?!(?:who|whom|whose|which|that|where|when|if|as|than|because|to|and|or|but)\b)[\w'’.%$€£-]+){{0,7}}?
      \s+{_FINITE}\b(?!\s*$)
    """,
    _FLAGS,
)
# A shared condition or speaker in front would be lost for the second statement.
_EN_BOUND = regex.compile(
    r"""
    ^\W*(?:if|when|whenever|while|although|though|because|since|unless|until|after|before|as|once|whether
      |despite|suppose|assuming|according|both|neither|either|not|had|were|should)\b
    | \b(?:that|whether|if|because|unless|either|neither|not\s+only|both|said|says|say|claim(?:s|ed)?
      |argue[sd]?|believe[sd]?|thinks?|thought|suggest(?:s|ed)?|report(?:s|ed)?|den(?:y|ies|ied)|according|allegedly|reportedly|supposedly)\b
    """,
    _FLAGS,
)
_VI_VERB = (
    r"(?:là|đã|được|có|bị|sẽ|đang|nằm|thuộc|không|chưa|vẫn|cũng|gồm|sinh|mất"
    r"|trở\s+thành|qua\s+đời|sống|viết|lớn|nhỏ|dài|cao)"
)
_VI_PERSON = r"(?:ông|bà|nó|họ|anh|chị|cô|chúng|đây|đó|điều)(?:\s+(?:ấy|này|đó|ta))?"
_VI_LEFT = regex.compile(rf"\S\s+{_VI_VERB}\b", _FLAGS)
_VI_PERSON_RIGHT = regex.compile(rf"{_VI_PERSON}\s+(?:\w+\s+)?{_VI_VERB}\s+\w", _FLAGS)
_VI_RIGHT = regex.compile(rf"(?!{_VI_VERB}\b)\w+(?:\s+\w+){{0,6}}?\s+{_VI_VERB}\s+\w", _FLAGS)
_VI_BOUND = regex.compile(
    r"""
    ^\W*(?:nếu|khi|vì|mặc\s+dù|tuy|dù|do|bởi|để|trong\s+khi|sau\s+khi|trước\s+khi|theo|không\s+(?:chỉ|những))\b
    | \b(?:rằng|cho\s+biết|nói|cho\s+là|tin|không\s+chỉ|không\s+những)\b
    """,
    _FLAGS,
)
_ZH_VERB = (
    r"(?:是|为|為|在|有|位于|位於|于|於|被|由|会|會|能|可以|成为|成為|拥有|擁有|没有|沒有|不是|属于|屬於|出生|去世|获得|獲得"
    r"|叫|称为|稱為|达|達|超过|超過|包括|占|距)"
)
_ZH_LEFT = regex.compile(rf"[\p{{Han}}\p{{L}}\p{{N}}]{_ZH_VERB}")
# No subject of its own: the second half depends on the first.
_ZH_LEANS = (
    r"(?:[不未没沒也仍并並却卻还還又是在有被由会會能为為已从從于於对對把使让讓因且非后後只仅僅更很曾将將可与與和以就都要若如当當\d]"
    r"|最终|最終|随后|隨後|目前|现在|現在|主要|通常|一直|始终|始終|直到"
    r"|非常|经常|經常|逐渐|逐漸|同时|同時|总是|總是|甚至|尤其|特别|特別|大多|大约|大約|约|約)"
)
_ZH_RIGHT = regex.compile(
    rf"(?!{_ZH_LEANS})(?:[他她它][们們]?|[这這那其该該][\p{{Han}}\p{{N}}]{{0,8}}?|[\p{{Han}}\p{{L}}\p{{N}}·《》“”]{{2,12}}?)"
    rf"[也都则則就还還曾已将將又]?{_ZH_VERB}[\p{{Han}}\p{{L}}\p{{N}}]",
    _FLAGS,
)
_ZH_BOUND = regex.compile(
    r"^\W*(?:如果|若|虽然|雖然|尽管|儘管|因为|因為|由于|由於|当|當|即使|为了|為了|除了|无论|無論|只要|只有|除非|据|據|根据|根據)"
    r"|认为|認為|表示|指出|声称|聲稱|[说說道]|相信|不仅|不僅|不但|不是"
)


def clause_spans(sentence: str) -> list[Span]:
    """Return the parts of a sentence that are whole statements each, without the words that join them.

    The whole sentence is one part where it is better not split: inside brackets and quotations, under a
    condition, in reported speech, and where a part has no subject and verb of its own.

    >>> text = "Ulm is old, and it lies on the Danube, but not on the Rhine."
    >>> [text[start:end] for start, end in clause_spans(text)]
    ['Ulm is old', 'it lies on the Danube, but not on the Rhine.']
    """
    if len(sentence) > _LONGEST:
        return [(0, len(sentence))]
    aside = inside_brackets(sentence)
    spans, start = [], 0
    for joint in _JOINT.finditer(sentence):
        left, right = sentence[start : joint.start()], sentence[joint.end() :]
        if not aside[joint.start()] and right and _both_whole(left, right, joint):
            spans.append((start, joint.start()))
            start = joint.end()
    return [*spans, (start, len(sentence))]


def _both_whole(left: str, right: str, joint: regex.Match) -> bool:
    right = right[:200]
    if joint["zh"]:
        return bool(_ZH_LEFT.search(left) and _ZH_RIGHT.match(right)) and not _ZH_BOUND.search(left)
    if joint["bare"]:
        return _english(left, right) and bool(regex.match(rf"{_PERSON}\b", right, _FLAGS))
    vietnamese = _VI_PERSON_RIGHT.match(right) or (not joint["vi_and"] and _VI_RIGHT.match(right))
    if vietnamese and _VI_LEFT.search(left):
        return not _VI_BOUND.search(left)
    return not joint["vi_and"] and _english(left, right)


def _english(left: str, right: str) -> bool:
    return bool(_EN_LEFT.search(left) and _EN_RIGHT.match(right)) and not _EN_BOUND.search(left)


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
_CONNECTIVES = pattern("connectives").pattern
_LEAD = regex.compile(
    rf"""
    (?: (?:{_CONNECTIVES})\s*[,，、]\s*
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

    One claim for each sentence, or for each clause where every clause is a whole statement. Connectives in
    front ("However,"), list marks, emphasis and citations are no part of a claim's text. A word, number or
    phrase is one claim. In order of first mention; those of the same words are one, with all their spans.
    Refusals, greetings, headings and talk about the answer are not relevant; a mere refusal is one such
    claim, an answer that refuses and then states something is split. Nothing where there is no word.

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
