"""Vectors of tokens and what is remembered of them, with small stand-ins for torch, which takes seconds to load."""

import sys
from collections import OrderedDict
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from core.llm.embeddings import RememberingEmbedder, shared_embedder, token_vectors

VECTORS = np.array(
    [[0, 0], [3, 4], [0, 2], [5, 12], [1, 0]]
)  # of padding, "a", "b", all else, the ends of a text


class Tensor:
    """An array with the methods of torch's that are used."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def float(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.values


class Columns(dict):
    def to(self, device):
        return self


class Tokenizer:
    """One token for each character."""

    is_fast = True

    def __init__(self, unknown):
        self.unk_token_id = unknown

    def __call__(self, texts, max_length, **_):
        read = {"overflow_to_sample_mapping": [], "input_ids": [], "offset_mapping": []}
        size = max_length - 2
        for i, text in enumerate(texts):
            for start in range(0, max(len(text), 1), size):
                part = text[start : start + size]
                spans = [(start + place, start + place + 1) for place in range(len(part))]
                read["overflow_to_sample_mapping"].append(i)
                read["input_ids"].append([4, *({"a": 1, "b": 2}.get(letter, 3) for letter in part), 4])
                read["offset_mapping"].append([(0, 0), *spans, (0, 0)])
        return read

    def pad(self, columns, return_tensors):
        rows = columns["input_ids"]
        longest = max(map(len, rows))
        ids = np.array([row + [0] * (longest - len(row)) for row in rows])
        return Columns(input_ids=Tensor(ids), attention_mask=Tensor(ids > 0))


class Model(list):
    """A model of at most ``length`` tokens, the ends included; ``shapes`` are those of the batches it has read."""

    def __init__(self, unknown=3, length=4, device="cpu"):
        super().__init__([SimpleNamespace(auto_model=self.states)])
        self.tokenizer, self.max_seq_length = Tokenizer(unknown), length
        self.device = SimpleNamespace(type=device)
        self.shapes = []

    def states(self, input_ids, attention_mask):
        self.shapes.append(input_ids.values.shape)
        return SimpleNamespace(last_hidden_state=Tensor(VECTORS[input_ids.values]))


@pytest.fixture(autouse=True)
def without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(inference_mode=nullcontext))


@pytest.mark.parametrize("unknown", [3, None])
def test_each_token_has_a_unit_vector_its_place_and_whether_the_model_knows_it(unknown):
    long, empty, short = token_vectors(Model(unknown), ["abxa", "", "b"])
    np.testing.assert_allclose(long.vectors, [[0.6, 0.8], [0, 1], [5 / 13, 12 / 13], [0.6, 0.8]], rtol=1e-6)
    assert long.spans.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]
    assert long.known.tolist() == [True, True, unknown is None, True]
    assert (empty.vectors.shape, empty.spans.shape, empty.known.shape) == ((0, 2), (0, 2), (0,))
    assert (short.vectors.tolist(), short.spans.tolist(), short.known.tolist()) == (
        [[0, 1]],
        [[0, 1]],
        [True],
    )


def test_no_texts_and_a_tokenizer_without_places():
    model = Model()
    assert token_vectors(model, []) == []
    model.tokenizer.is_fast = False
    assert token_vectors(model, ["a"]) is None


@pytest.mark.parametrize(("device", "sizes"), [("cpu", [8, 8, 4]), ("cuda", [20]), ("mps", [20])])
def test_the_longest_pieces_are_read_first_few_at_once_on_the_cpu(device, sizes):
    model = Model(length=30, device=device)
    found = token_vectors(model, ["a" * n for n in range(1, 21)])
    assert [len(one.known) for one in found] == list(range(1, 21))
    longest = np.cumsum([0, *sizes[:-1]])
    assert model.shapes == [(size, 22 - before) for size, before in zip(sizes, longest, strict=True)]


def test_the_vectors_asked_for_last_are_remembered_as_far_as_there_is_room():
    asked = []

    def embed(texts):
        asked.append(texts[0])
        return np.full((len(texts), 4), len(texts[0]), dtype=np.float32)  # 16 bytes for each text

    embedder = RememberingEmbedder(SimpleNamespace(embed=embed), most_bytes=32)
    for text in ("a", "bb", "a", "ccc", "a", "bb"):
        assert embedder.embed([text]).tolist() == [[len(text)] * 4]
    assert asked == ["a", "bb", "ccc", "bb"]  # "bb" was the one not asked for longest, and made room
    embedder.embed(["four"] * 3)  # more than there is room for at all: nothing makes way for it
    assert not embedder.embed(["a"]).flags.writeable
    assert asked == ["a", "bb", "ccc", "bb", "four"]
    assert embedder.embed_tokens(["a"]) is None


def test_a_process_keeps_the_two_embedders_that_were_used_last(monkeypatch):
    monkeypatch.setattr("core.llm.embeddings._shared", OrderedDict())  # other tests keep theirs
    first, second = shared_embedder("1"), shared_embedder("2")
    assert shared_embedder("1") is first
    shared_embedder("3")
    assert shared_embedder("1") is first
    assert shared_embedder("2") is not second
