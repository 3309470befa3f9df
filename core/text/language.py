"""In which of the languages that this project reads a text is written."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import regex

from core.errors import InputError
from core.text.folding import folded
from core.text.numbers import is_vietnamese
from core.text.words import words

Language = Literal["en", "vi", "zh-Hans", "zh-Hant"]
LANGUAGES: tuple[Language, ...] = ("en", "vi", "zh-Hans", "zh-Hant")
_OTHER_NAMES: dict[str, Language] = {"zh": "zh-Hans", "zh-CN": "zh-Hans", "zh-TW": "zh-Hant"}

_HAN = regex.compile(r"\p{Han}")
_LATIN = regex.compile(r"\p{Latin}")
_ENOUGH = 500  # characters
_FEW = 8  # letters; fewer tell py3langid nothing


def language(text: str, other: str | None = None) -> Language:
    """Return the language of a text; ``other``, else English, where it has too few Latin letters to tell.

    Chinese by its characters, traditional where one has a simpler form; English against Vietnamese by letters
    that only Vietnamese has, else by py3langid.

    >>> [language(text) for text in ("Who built it?", "Ai xây cầu?", "谁造的？", "誰造的？")]
    ['en', 'vi', 'zh-Hans', 'zh-Hant']
    """
    text = text[:_ENOUGH]
    found = words(text)
    n_han = len(_HAN.findall(text))
    if n_han and 2 * n_han >= len(found):
        given = "".join(_HAN.findall(text))
        return "zh-Hans" if folded(given) == given else "zh-Hant"
    if is_vietnamese(folded(text)):
        return "vi"
    latin = " ".join(word for word in found if _LATIN.search(word))
    if len(_LATIN.findall(latin)) < _FEW:
        return language(other) if other else "en"
    return "vi" if identifier("en", "vi").classify(latin)[0] == "vi" else "en"


def language_named(name: object, argument: str = "lang") -> Language:
    """Return the language of a name, in capitals or not; InputError, with the list, for an unknown one.

    >>> [language_named(name) for name in ("vi", "zh", "zh-cn", "zh_TW")]
    ['vi', 'zh-Hans', 'zh-Hans', 'zh-Hant']
    """
    known = {one: one for one in LANGUAGES} | _OTHER_NAMES
    given = str(name).replace("_", "-").lower()
    for one, found in known.items():
        if one.lower() == given:
            return found
    raise InputError(f"{argument} must be one of {', '.join(known)}, got {name!r}.")


@lru_cache
def identifier(*languages: str) -> Any:
    """Return what classifies a text as one of some languages, with a probability."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    # One of its own: the module's is shared by every user in the process.
    found = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    found.set_languages(list(languages))
    return found
