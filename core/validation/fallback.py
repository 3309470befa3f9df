"""What is shown in place of an answer that must not be shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from core.text.folding import folded
from core.text.language import Language, language_named
from core.text.words import words
from core.validation.types import Code, ValidationOutcome

MAX_SHARED_WORDS = 4  # in a row, with the rejected answer; ideographs are words


@dataclass(frozen=True)
class Wording:
    """The fallback in one language: why there is no answer, by what was found wrong, and what to try."""

    no_ground: str
    rejected: str
    empty: str
    advice: str


_DEFAULT: Mapping[Language, Wording] = {
    "en": Wording(
        "The available sources do not support an answer to this question.",
        "This question cannot be answered here.",
        "No answer came back.",
        "Please reword the question, name what it is about, or ask about a related subject.",
    ),
    "vi": Wording(
        "Các nguồn hiện có không đủ căn cứ để trả lời câu hỏi này.",
        "Câu hỏi này không thể được trả lời ở đây.",
        "Không nhận được câu trả lời.",
        "Bạn hãy diễn đạt lại câu hỏi, nêu rõ chủ đề, hoặc hỏi về một chủ đề liên quan.",
    ),
    "zh-Hans": Wording(
        "现有资料不足以回答这个问题。",
        "这个问题无法在此回答。",
        "没有收到回答。",
        "请换一种方式提问，说明具体主题，或询问相关的内容。",
    ),
    "zh-Hant": Wording(
        "現有資料不足以回答這個問題。",
        "這個問題無法在此回答。",
        "沒有收到回答。",
        "請換一種方式提問，說明具體主題，或詢問相關的內容。",
    ),
}
# At most four words, so that it can share no five with any answer.
_LAST: Mapping[Language, str] = {
    "en": "No supported answer.",
    "vi": "Chưa thể trả lời.",
    "zh-Hans": "暂无答案",
    "zh-Hant": "暫無答案",
}
_REJECTED = {Code.GUARD_REJECTED, Code.GUARD_FAILED}


@dataclass(frozen=True)
class Served:
    """What a user is shown, and beside it, for the engineer alone, the answer as it was."""

    text: str
    original: str
    used_fallback: bool
    outcome: ValidationOutcome


@dataclass(frozen=True)
class FallbackHandler:
    """Replaces answers that a validator calls critical; others are served as they are.

    ``wording`` replaces the words of a language by those of a product. The fallback holds nothing of question
    or answer, and shares no five words in a row with the rejected answer (ideographs count as words): what of
    the wording would do so, as where the answer quotes it, is left out.
    """

    wording: Mapping[str, Wording] = field(default_factory=dict)

    def __post_init__(self) -> None:
        wording = {language_named(name, "A language of wording"): own for name, own in self.wording.items()}
        object.__setattr__(self, "wording", wording)

    def get_fallback_answer(
        self,
        original_answer: str,
        validation_result: ValidationOutcome,
        ctx_docs: Sequence[object] = (),  # noqa: ARG002
        user_question: str = "",  # noqa: ARG002
        detected_lang: str | None = None,
    ) -> str:
        """Return what to show for an answer: `serve` by another name, for programs that call this one.

        ``ctx_docs`` and ``user_question`` are not used: what they say of the answer is in its validation.
        """
        return self.serve(original_answer, validation_result, detected_lang).text

    def serve(self, answer: str, outcome: ValidationOutcome, lang: str | None = None) -> Served:
        """Return what to show for an answer; ``lang`` is that of the outcome by default.

        InputError where ``lang`` is no language that this project speaks.
        """
        if not outcome.critical:
            return Served(answer, answer, False, outcome)
        noted = replace(outcome, validation_info={**outcome.validation_info, "used_fallback": True})
        return Served(self.text(answer, outcome, lang), answer, True, noted)

    def text(self, answer: str, outcome: ValidationOutcome, lang: str | None = None) -> str:
        """Return the fallback for a rejected answer."""
        spoken = outcome.lang if lang is None else language_named(lang)
        said = self.wording.get(spoken, _DEFAULT[spoken])
        codes = {verdict.reason.code for verdict in outcome.failed}
        why = said.empty if Code.EMPTY_ANSWER in codes else said.no_ground
        why = said.rejected if codes & _REJECTED else why
        both = why + ("" if spoken.startswith("zh") else " ") + said.advice
        return next((t for t in (both, why, said.advice) if not shares_words(t, answer)), _LAST[spoken])


def shares_words(text: str, other: str, n: int = MAX_SHARED_WORDS + 1) -> bool:
    """Tell whether two texts have ``n`` words in a row in common, written in any case, accents or script.

    >>> shares_words("it was built by Brunel in 1866", "Built by Brunel in 1866!")
    True
    """
    ours, theirs = words(folded(text)), words(folded(other))
    known = {tuple(theirs[i : i + n]) for i in range(len(theirs) - n + 1)}
    return any(tuple(ours[i : i + n]) in known for i in range(len(ours) - n + 1))
