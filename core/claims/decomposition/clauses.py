"""Where a sentence holds several whole statements: by rules that rather split too little."""

from __future__ import annotations

import regex

from core.text.sentences import Span, inside_brackets

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
