"""The glossary names what the pages say of claims."""

from core.definitions import CAUSAL_LABELS, CLAIM_REASONS, CLAIM_STATES, CLAIM_VERDICTS, QUADRANTS


def test_methods_name_every_word_for_claims(open_app, healthy, texts):
    said = texts(healthy(open_app("methods"))).replace("\\", "").replace("\u2060", "")
    for words in (CLAIM_STATES, CLAIM_VERDICTS, CAUSAL_LABELS, QUADRANTS, CLAIM_REASONS):
        for word in words.values():
            assert word.meaning in said, word.name
