"""A cross-encoder with random weights in a folder: labels, shapes, and what cannot be loaded."""

import numpy as np
import pytest

from core.claims.verifiers.nli import NLIVerifier
from core.errors import BackendError
from core.llm.packaged import quiet

LABELS = ("contradiction", "entailment", "neutral")


def write(folder, labels):
    """Write a small BERT with one output for each label; a vocabulary of letters."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    letters = "abcdefghijklmnopqrstuvwxyz0123456789."
    vocabulary = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *letters,
        *(f"##{letter}" for letter in letters),
    ]
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        initializer_range=1.0,
        id2label=dict(enumerate(labels)),
        label2id={label: i for i, label in enumerate(labels)},
    )
    with quiet():
        BertForSequenceClassification(config).save_pretrained(folder)
        BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=64).save_pretrained(folder)
    return str(folder)


def logits(folder, passage, claim):
    """What the model itself says, without the verifier."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    with quiet(), torch.inference_mode():
        model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
        read = AutoTokenizer.from_pretrained(folder)(passage, claim, return_tensors="pt")
        return model(**read).logits[0].double().numpy()


CLAIMS, PASSAGES = ["a mill burned", "it rained", ""], ["the mill burned down", "rain fell", "…"]


@pytest.mark.parametrize(("labels", "place"), [(LABELS, 1), (("ENTAILMENT", "not_entailment"), 0)])
def test_the_probability_is_that_of_entailment(tmp_path, labels, place):
    folder = write(tmp_path / "model", labels)
    M = NLIVerifier(folder).support(CLAIMS, PASSAGES)
    assert np.isnan(M).tolist() == [[False, False, True], [False, False, True], [True, True, True]]
    for i in range(2):
        for j in range(2):
            shares = np.exp(logits(folder, PASSAGES[j], CLAIMS[i]))
            assert M[i, j] == pytest.approx(shares[place] / shares.sum(), abs=1e-5)


def test_one_output_is_log_odds(tmp_path):
    folder = write(tmp_path / "model", ["LABEL_0"])
    found = NLIVerifier(folder).support(CLAIMS[:1], PASSAGES[:1])[0, 0]
    assert found == pytest.approx(1 / (1 + np.exp(-logits(folder, PASSAGES[0], CLAIMS[0])[0])), abs=1e-5)


def test_many_groups_equal_one_at_a_time(tmp_path):
    verifier = NLIVerifier(write(tmp_path / "model", LABELS))
    groups = [(CLAIMS[:1], PASSAGES), ([], PASSAGES), (CLAIMS[:2], PASSAGES[:1])]
    for found, (claims, passages) in zip(verifier.support_many(groups), groups, strict=True):
        np.testing.assert_allclose(found, verifier.support(claims, passages), atol=1e-5)
    assert verifier.name.startswith("nli:")


@pytest.mark.parametrize("labels", [("LABEL_0", "LABEL_1", "LABEL_2"), ("good", "bad")])
def test_a_model_without_entailment_is_refused(tmp_path, labels):
    with pytest.raises(BackendError, match="must have one label for entailment; it has"):
        NLIVerifier(write(tmp_path / "model", labels)).support(["a"], ["b"])


def test_what_cannot_be_loaded_is_one_sentence(tmp_path):
    with pytest.raises(BackendError, match=r"^The NLI model .*nothing cannot be loaded") as raised:
        NLIVerifier(str(tmp_path / "nothing")).support(["a"], ["b"])
    assert "\n" not in str(raised.value)


def test_nothing_is_loaded_for_nothing():
    assert NLIVerifier("no-such-model").support([""], ["a"]).shape == (1, 1)
