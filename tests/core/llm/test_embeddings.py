"""Vectors of tokens and what is remembered of them, with small stand-ins for torch, which takes seconds to load."""

import sys
from collections import OrderedDict
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from core.errors import BackendError
from core.llm import embeddings
from core.llm.embeddings import (
    RememberingEmbedder,
    SentenceEmbedder,
    batch_size,
    shared_embedder,
    token_vectors,
    unit_rows,
)

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

    def __call__(
        self,
        texts,
        max_length,
        truncation=False,
        return_overflowing_tokens=False,
        return_offsets_mapping=False,
    ):
        read = {"overflow_to_sample_mapping": [], "input_ids": []}
        if return_offsets_mapping:
            read["offset_mapping"] = []
        size = max_length - 2 if truncation else 10_000
        for i, text in enumerate(texts):
            for start in range(0, max(len(text), 1) if return_overflowing_tokens else 1, size):
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


@pytest.mark.parametrize("unknown", [1, 2, 3, None])
def test_each_token_has_a_unit_vector_its_place_and_whether_the_model_knows_it(unknown):
    long, empty, short = token_vectors(Model(unknown), ["abxa", "", "b"])
    np.testing.assert_allclose(long.vectors, [[0.6, 0.8], [0, 1], [5 / 13, 12 / 13], [0.6, 0.8]], rtol=1e-6)
    assert long.spans.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]
    assert long.known.tolist() == [token != unknown for token in (1, 2, 3, 1)]
    assert (empty.vectors.shape, empty.spans.shape, empty.known.shape) == ((0, 2), (0, 2), (0,))
    assert (short.vectors.tolist(), short.spans.tolist(), short.known.tolist()) == (
        [[0, 1]],
        [[0, 1]],
        [unknown != 2],
    )


def test_no_texts_and_a_tokenizer_without_places():
    model = Model()
    assert token_vectors(model, []) == []
    for tokenizer in (SimpleNamespace(is_fast=False), SimpleNamespace()):
        model.tokenizer = tokenizer
        assert token_vectors(model, ["a"]) is None


@pytest.mark.parametrize(("length", "read"), [(None, 512), (512, 512), (9999, 512), (300, 300)])
def test_no_piece_has_more_tokens_than_the_model_takes_nor_more_than_512(length, read):
    model = Model(length=length)
    assert len(token_vectors(model, ["a" * 550])[0].known) == 550
    assert model.shapes == [(2, read)]


def test_how_many_texts_a_model_reads_at_once():
    assert [batch_size(Model(device=device)) for device in ("cpu", "cuda")] == [8, 64]


def test_rows_have_length_1_and_rows_of_zeros_stay():
    rows = unit_rows(np.array([[3, 4], [0, 0], [0, -2]], dtype=np.float32))
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0, 0], [0, -1]], rtol=1e-6)
    assert rows.dtype == np.float32


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


@pytest.mark.parametrize(("nbytes", "calls"), [(256 * 2**20, 1), (256 * 2**20 + 1, 2)])
def test_a_quarter_of_a_gigabyte_is_remembered_where_nothing_else_is_said(nbytes, calls):
    asked, large = [], SimpleNamespace(nbytes=nbytes, setflags=lambda write: None)
    embedder = RememberingEmbedder(SimpleNamespace(embed=lambda texts: asked.append(texts) or large))
    for _ in range(2):
        assert embedder.embed(["a"]) is large
    assert len(asked) == calls


def test_texts_that_make_one_text_together_are_not_confused():
    embedder = RememberingEmbedder(
        SimpleNamespace(embed=lambda texts: np.array([[len(text)] for text in texts], dtype=np.float32))
    )
    found = [embedder.embed(texts).tolist() for texts in (["ab", "c"], ["a", "bc"], ["abc"], ["a\ud800"], [])]
    assert found == [[[2], [1]], [[1], [2]], [[3]], [[2]], []]


def test_vectors_of_tokens_are_passed_on():
    inner = SimpleNamespace(embed=None, embed_tokens=lambda texts: [*texts, "vectors"])
    assert RememberingEmbedder(inner).embed_tokens(["a"]) == ["a", "vectors"]


@pytest.fixture
def library(monkeypatch):
    """Stand-ins for the library that loads a model, and for what makes one quicker on the CPU; what was asked of them."""
    seen = SimpleNamespace(loaded=[], encoded=[], quicker=[], device="cpu", onednn=True, error=None)

    class Loaded(Model):
        def get_embedding_dimension(self):
            return 2

        def encode(self, texts, **options):
            seen.encoded.append((texts, options))
            return [[3.0, 4.0] for _ in texts]

    def load(source, local_files_only):
        seen.loaded.append((source, local_files_only))
        if seen.error is not None:
            raise seen.error
        return Loaded(device=seen.device)

    mkldnn = SimpleNamespace(to_mkldnn=seen.quicker.append)
    torch = SimpleNamespace(
        inference_mode=nullcontext,
        backends=SimpleNamespace(mkldnn=SimpleNamespace(is_available=lambda: seen.onednn)),
        utils=SimpleNamespace(mkldnn=mkldnn),
    )
    modules = {"torch": torch, "torch.utils": torch.utils, "torch.utils.mkldnn": mkldnn}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=load))
    monkeypatch.setattr(embeddings, "quiet", nullcontext)
    monkeypatch.setattr(embeddings, "require_local_models", lambda what: None)
    monkeypatch.setattr(embeddings, "packaged_embedder", lambda: "folder")
    return seen


def test_a_model_is_loaded_once_the_packaged_one_from_its_folder_alone(library):
    embedder = SentenceEmbedder()
    assert library.loaded == []
    np.testing.assert_allclose(embedder.embed(["a", "b"]), [[0.6, 0.8]] * 2, rtol=1e-6)
    assert embedder.embed([]).shape == (0, 2)
    assert [len(one.known) for one in embedder.embed_tokens(["abx"])] == [3]
    SentenceEmbedder("some/model").embed([])
    assert library.loaded == [("folder", True), ("some/model", False)]
    assert (embedder.name, SentenceEmbedder("some/model").name) == ("all-MiniLM-L6-v2", "some/model")
    options = {"batch_size": 8, "show_progress_bar": False, "convert_to_numpy": True}
    assert library.encoded == [(["a", "b"], options)]


@pytest.mark.parametrize(
    ("model", "device", "onednn", "quicker"),
    [
        (None, "cpu", True, True),
        (None, "cpu", False, False),
        (None, "cuda", True, False),
        ("some/model", "cpu", True, False),
    ],
)
def test_the_packaged_model_alone_is_made_quicker_and_only_on_the_cpu(
    library, model, device, onednn, quicker
):
    library.device, library.onednn = device, onednn
    SentenceEmbedder(model).embed([])
    assert len(library.quicker) == quicker


@pytest.mark.parametrize("kind", [OSError, ValueError, RuntimeError])
def test_a_model_that_cannot_be_loaded_is_told_in_one_line(library, kind):
    library.error = kind(" no such thing\nat all\n")
    with pytest.raises(BackendError, match=r"^The embedding model x/y cannot be loaded: no such thing$"):
        SentenceEmbedder("x/y").embed(["a"])
