"""Words, passages, overlap and abstentions, in any script."""

from core.text.abstention import answer_status, is_abstention
from core.text.matching import is_correct
from core.text.overlap import RougeL, rouge_l
from core.text.words import Passage, passages, word_spans, words

__all__ = [
    "Passage",
    "RougeL",
    "answer_status",
    "is_abstention",
    "is_correct",
    "passages",
    "rouge_l",
    "word_spans",
    "words",
]
