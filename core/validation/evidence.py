"""How much of what an answer says is in the words of its best passage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import regex

from core.text.folding import folded
from core.text.numbers import is_vietnamese
from core.text.reading import read
from core.text.words import words

_HAN = regex.compile(r"\p{Han}")
# These answer a question and show nothing by themselves.
_POLAR = frozenset("yes true false right có đúng sai phải vâng ạ 对 否 错".split())
_SCRIPTS = {
    name: regex.compile(rf"\p{{{name}}}")
    for name in ("Latin", "Han", "Hiragana", "Katakana", "Cyrillic", "Arabic", "Hangul", "Thai", "Devanagari",
                 "Greek", "Hebrew")
}  # fmt: skip
_JAPANESE = ("Hiragana", "Katakana")
# Languages in Latin letters; of fewer, those that are told apart are surer.
_LATIN = "en vi fr de es it pt nl sv da pl cs hu ro tr id fi".split()
_SURE = 0.95  # probability of a language; below it, as of names, the text may be in any
_ENOUGH = 500  # characters


def overlap(answer: str, passages: Sequence[str]) -> float | None:
    """Return the share of the answer's words of content that one passage has: the largest of the passages.

    Stems in English, syllables in Vietnamese, pairs of ideographs in Chinese (single ones occur in any text),
    numbers by value. Each word counts once.

    Returns
    -------
    float or None
        In [0, 1], higher = more of the answer is in the passage. None without a passage or a word of content.

    Examples
    --------
    >>> overlap("Unwin built the bridge.", ["Bridges were designed by Unwin.", "Coffee"])
    0.6666666666666666
    """
    said = set(_units(answer)) - _POLAR
    if not said or not passages:
        return None
    return max(len(said & _known(passage)) for passage in passages) / len(said)


def is_foreign(answer: str, question: str, passage: str) -> bool:
    """Tell whether a passage is in another language than an answer; False where that is not sure.

    By their scripts, else by py3langid and letters that only Vietnamese has. An answer too short for that,
    such as a name, is taken to be in the language of its question.

    Examples
    --------
    >>> passage = "The bridge was built by the engineers."
    >>> is_foreign("Cầu do Unwin xây.", "Ai xây cầu?", passage), is_foreign("Unwin", "Who built it?", passage)
    (True, False)
    """
    (script, said), (other_script, other) = _spoken(answer), _spoken(passage)
    if not (script and other_script):  # numbers are of no language
        return False
    said = said or _spoken(question)[1]
    return script != other_script or bool(said and other and said != other)


@lru_cache(maxsize=4096)
def _spoken(text: str) -> tuple[str, str]:
    """Return the script and the language of a text, each "" where it is not sure."""
    text = text[:_ENOUGH]
    found = Counter(
        name for word in words(text) for name, letters in _SCRIPTS.items() if letters.search(word)
    )
    script = found.most_common(1)[0][0] if found else ""
    if script != "Latin":  # Japanese has ideographs, too
        script = "Japanese" if any(name in found for name in _JAPANESE) else script
        return script, script
    language, p = _identifier().classify(text)
    return script, str(language) if p >= _SURE else "vi" if is_vietnamese(folded(text)) else ""


@lru_cache(maxsize=1)
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    found = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    found.set_languages(_LATIN)
    return found


@lru_cache(maxsize=4096)
def _known(passage: str) -> frozenset[str]:
    return frozenset(_units(passage))


def _units(text: str) -> Iterable[str]:
    """Return the stems of the words of content, ideographs as pairs of neighbours or alone."""
    tokens = [token for token in read(text) if token.content]
    joined = False  # with the ideograph before it
    for token, after in zip(tokens, [*tokens[1:], None], strict=False):
        han = not token.stem.isascii() and _HAN.fullmatch(token.stem)
        if han and after is not None and after.start == token.end and _HAN.fullmatch(after.stem):
            yield token.stem + after.stem
            joined = True
            continue
        if not (han and joined):
            yield token.stem
        joined = False
