"""Relations of texts, with small stand-ins for torch, which takes seconds to load, and for the models."""

import json
import math
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from core.errors import BackendError
from core.llm import nli
from core.llm.nli import CrossEncoderNLI, JudgeNLI, Relation, TextPair
from tests.scripted import ScriptedLLM

STATEMENTS = [f"It is statement {n}." for n in range(11)]
LABELS = {0: "contradiction", 1: "entailment", 2: "neutral"}


def judge(verdict):
    """Return a judge that says of each statement what ``verdict`` says of its text."""

    def answer(request):
        lines = request.messages[-1].content.split("\n\n")
        shown = [line.partition(": ") for line in lines if line.startswith("Statement ")]
        said = {name.removeprefix("Statement "): verdict(json.loads(text)) for name, _, text in shown}
        return json.dumps(said)

    return ScriptedLLM(answer)


def test_a_judge_is_shown_ten_statements_at_once_with_room_to_answer_each():
    llm = judge(lambda text: "ENTAILED")
    pairs = [TextPair("Yes.", text, "Which?") for text in [*STATEMENTS, STATEMENTS[0]]]
    assert JudgeNLI(llm).relations(pairs) == [Relation(1.0, 0.0)] * 12
    shown = [sum(text in request.messages[-1].content for text in STATEMENTS) for request in llm.requests]
    assert shown == [1, 10]
    assert [request.max_tokens for request in llm.requests] == [40, 256]  # 16, and 24 for each statement


def test_what_the_judge_says_is_the_relation_of_each_pair():
    verdicts = {"a": "CONTRADICTED", "b": "ENTAILED", "c": "NEITHER", "d": "perhaps"}
    llm = judge(verdicts.__getitem__)
    pairs = [TextPair("p", "a"), TextPair("p", "b"), TextPair("q", "c"), TextPair("r", "d")]
    *known, unknown = JudgeNLI(llm).relations(pairs)
    assert known == [Relation(0.0, 1.0), Relation(1.0, 0.0), Relation(0.0, 0.0)]
    assert all(math.isnan(value) for value in unknown)  # a reply that cannot be used is no "neither"
    assert JudgeNLI(llm).relations([]) == []


def test_a_judge_reads_every_language_as_it_is_written():
    """Escapes are what a small model cannot read."""
    llm = judge(lambda text: "ENTAILED")
    JudgeNLI(llm).relations([TextPair("Hà Nội", "是的", "Ở đâu?")])
    assert llm.requests[0].messages[-1].content.split("\n\n")[:3] == [
        'Question: "Ở đâu?"', 'Answer: "Hà Nội"', 'Statement 1: "是的"',
    ]  # fmt: skip


@pytest.fixture
def encoder(monkeypatch):
    """Return a function that puts a model in the place of the one to load: the logits of each pair, or an error."""
    monkeypatch.setattr(nli, "quiet", nullcontext)
    monkeypatch.setattr(nli, "require_local_models", lambda what: None)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(nn=SimpleNamespace(Identity=object)))

    def put(logits, labels=LABELS):
        asked = []

        def load(name, device):
            put.loaded.append((name, device))
            if isinstance(logits, Exception):
                raise logits
            config = SimpleNamespace(id2label=labels)
            return SimpleNamespace(model=SimpleNamespace(config=config), predict=predict)

        def predict(pairs, **options):
            asked.append(pairs)
            put.options.append(options)
            return [logits[pair] for pair in pairs]

        monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(CrossEncoder=load))
        return asked

    put.loaded, put.options = [], []
    return put


@pytest.mark.parametrize("kind", [OSError, ValueError, RuntimeError, KeyError])
def test_a_model_that_cannot_be_loaded_is_told_in_one_line(encoder, kind):
    encoder(kind("no such thing\nat all"))
    with pytest.raises(
        BackendError, match=r"^The NLI model x/y cannot be loaded.*: '?no such thing"
    ) as failed:
        CrossEncoderNLI("x/y").load()
    assert "\n" not in str(failed.value)


def test_the_labels_say_which_output_is_which_and_each_pair_is_read_once(encoder):
    logits = {
        ("Who? Ann", "Who? A woman"): [0.0, math.log(6), 0.0],
        ("Ann", "Bob"): [math.log(3), 0.0, 0.0],
    }
    asked = encoder(logits)
    pairs = [TextPair("Ann", "A woman", "Who?"), TextPair("Ann", "Bob"), TextPair("Ann", "A woman", "Who?")]
    model = CrossEncoderNLI("x/y")
    found = model.relations(pairs)
    # Of 8 parts 6 and 1; of 5 parts 1 and 3.
    assert found == [pytest.approx((0.75, 0.125)), pytest.approx((0.2, 0.6)), pytest.approx((0.75, 0.125))]
    assert asked == [list(logits)]
    model.load()
    assert model.relations(pairs[1:2]) == [pytest.approx((0.2, 0.6))]
    assert encoder.loaded == [("x/y", None)]  # once


def test_a_model_reads_32_pairs_at_once_and_writes_nothing_to_the_screen(encoder):
    encoder({("a", "b"): [0.0, 0.0, 0.0]})
    CrossEncoderNLI("x/y", device="cuda").relations([TextPair("a", "b")])
    (options,) = encoder.options
    identity = options.pop("activation_fn")
    assert type(identity) is object  # the stand-in for torch's: logits come as they are
    assert options == {"batch_size": 32, "show_progress_bar": False, "convert_to_numpy": True}
    assert encoder.loaded == [("x/y", "cuda")]


def test_a_judge_that_speaks_of_a_statement_it_was_not_shown_is_not_believed():
    llm = ScriptedLLM(lambda request: '{"1": "ENTAILED", "2": "ENTAILED"}')
    (relation,) = JudgeNLI(llm).relations([TextPair("p", "a")])
    assert all(math.isnan(value) for value in relation)
    assert llm.calls == 2  # it was shown what is wrong, once


def test_a_model_without_contradiction_leaves_it_unknown(encoder):
    pair = TextPair("a", "b")
    encoder({("a", "b"): [0.0, math.log(3)]}, {0: "not_entailment", 1: "entailment"})
    assert CrossEncoderNLI("x").relations([pair]) == [pytest.approx((0.75, math.nan), nan_ok=True)]
    encoder({("a", "b"): math.log(4)}, {0: "LABEL_0"})  # one output: the log-odds of entailment
    assert CrossEncoderNLI("x").relations([pair]) == [pytest.approx((0.8, math.nan), nan_ok=True)]


def test_a_model_of_another_kind_is_refused(encoder):
    encoder({}, {0: "negative", 1: "positive"})
    with pytest.raises(BackendError, match=r"one label for entailment; it has negative, positive\.$"):
        CrossEncoderNLI("x").load()
    encoder({}, {"0": "Supports", "1": "entailment", "2": "neutral"})
    with pytest.raises(
        BackendError, match=r"one label for entailment; it has supports, entailment, neutral\.$"
    ):
        CrossEncoderNLI("x").load()


def test_where_two_labels_are_contradictions_that_is_unknown(encoder):
    labels = {0: "contradiction", 1: "contradicts", 2: "entailment"}
    encoder({("a", "b"): [0.0, 0.0, math.log(6)]}, labels)
    (found,) = CrossEncoderNLI("x").relations([TextPair("a", "b")])
    assert found == pytest.approx((0.75, math.nan), nan_ok=True)
