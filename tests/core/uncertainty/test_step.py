"""The step that asks again: requests drawn alike for every question, samples kept, only the missing asked."""

import pandas as pd
import pytest

from core.errors import InputError
from core.llm.cache import CompletionCache
from core.llm.types import Completion
from core.pipeline.plan import plan_steps
from core.pipeline.sampling import TEMPERATURES, TOP_PS
from core.pipeline.steps import fill
from core.run import Run
from core.uncertainty.step import TESTED, UncertaintyStep
from tests.scripted import ScriptedLLM


@pytest.fixture
def run():
    """Two questions with a passage, and one without."""
    queries = pd.DataFrame(
        {
            "query_id": ["a", "b", "c"],
            "question": ["A?", "B?", "C?"],
            "answer": "x",
            "answer_status": "answered",
        }
    )
    passages = pd.DataFrame(
        {"query_id": ["a", "b"], "passage_id": "p", "title": "T", "text": "Text.", "retrieval_rank": 1.0}
    )
    return Run.create({"source": "upload"}, queries=queries, passages=passages)


def echo(request):
    return Completion(f"seed {request.seed}", "stop", 9, 2, 0.1, logprobs=(-0.5, -0.25))


def test_samples_are_drawn_alike_for_every_question_and_kept(run):
    llm = ScriptedLLM(echo)
    found = fill(run, UncertaintyStep(samples=5), llm=llm)["samples"]
    assert found["query_id"].to_list() == 5 * ["a"] + 5 * ["b"]
    a, b = (group.reset_index(drop=True).drop(columns="query_id") for _, group in found.groupby("query_id"))
    pd.testing.assert_frame_equal(a, b)
    assert a["sample_id"].to_list() == ["s1", "s2", "s3", "s4", "s5"]
    assert a["answer"].to_list() == [f"seed {i}" for i in range(1, 6)] and a["seed"].to_list() == [
        1,
        2,
        3,
        4,
        5,
    ]
    assert a["temperature"].between(*TEMPERATURES).all() and a["temperature"].nunique() == 5
    assert a["top_p"].between(*TOP_PS).all() and a["top_p"].nunique() == 5
    assert (a["logprob_sum"] == -0.75).all() and (a["n_tokens"] == 2).all()
    # The same whatever else is asked.
    more = fill(run, UncertaintyStep(samples=20), llm=ScriptedLLM(echo))["samples"]
    pd.testing.assert_frame_equal(more[more["query_id"] == "a"].iloc[:5].drop(columns="query_id"), a)
    other = fill(run, UncertaintyStep(samples=5, seed=1), llm=ScriptedLLM(echo))["samples"]
    assert not other["temperature"].isin(a["temperature"]).any()


def test_the_prompt_is_that_of_the_run(run):
    llm = ScriptedLLM(echo)
    answered = run.derive({"prompt": {"style": "full", "max_tokens": 77}})
    fill(answered, UncertaintyStep(samples=2), llm=llm)
    full = UncertaintyStep(style="full", max_tokens=77)
    other = ScriptedLLM(echo)
    fill(run, UncertaintyStep(samples=2, style="full", max_tokens=77), llm=other)
    assert {request.max_tokens for request in llm.requests} == {full.max_tokens}
    assert llm.requests == other.requests


def test_more_samples_are_added_to_those_there(run):
    five = fill(run, UncertaintyStep(samples=5), llm=ScriptedLLM(echo))
    llm = ScriptedLLM(echo)
    ten = fill(five, UncertaintyStep(samples=10), llm=llm)
    assert llm.calls == 10 and len(ten["samples"]) == 20
    assert ten["samples"].equals(fill(run, UncertaintyStep(samples=10), llm=ScriptedLLM(echo))["samples"])
    # Fewer are there already; another seed begins anew.
    assert fill(ten, UncertaintyStep(samples=5), llm=llm) is ten
    assert len(fill(ten, UncertaintyStep(samples=5, seed=7), llm=llm)["samples"]) == 10


def test_a_failed_call_is_no_sample_and_is_asked_again(run):
    def third_fails(request):
        return Completion.failed("No.") if request.seed == 3 else echo(request)

    broken = fill(run, UncertaintyStep(samples=5), llm=ScriptedLLM(third_fails))
    assert len(broken["samples"]) == 8 and broken.manifest["steps"]["uncertainty"]["n_left"] == 2
    assert "2 questions have fewer than 5 samples." in broken.manifest["notes"]
    llm = ScriptedLLM(echo)
    whole = fill(broken, UncertaintyStep(samples=5), llm=llm)
    assert llm.calls == 2 and len(whole["samples"]) == 10 and not whole.manifest["notes"]


def test_samples_of_another_origin_make_room(run):
    samples = pd.DataFrame({"query_id": "a", "sample_id": ["1", "2"], "answer": "old", "planted_meaning": 1})
    found = fill(run.derive(samples=samples), UncertaintyStep(samples=2), llm=ScriptedLLM(echo))["samples"]
    assert found["sample_id"].to_list() == ["s1", "s2", "s1", "s2"] and "old" not in set(found["answer"])


@pytest.mark.parametrize(
    "options",
    [
        {"samples": 1},
        {"samples": 101},
        {"samples": 2.5},
        {"seed": -1},
        {"seed": 2**31 - 100},
        {"context_questions": -1},
        {"context_questions": 1001},
    ],
)
def test_wrong_options(options):
    with pytest.raises(InputError, match="must be a whole number from"):
        UncertaintyStep(**options)


def test_options_at_the_ends_of_their_ranges():
    # The seed of the last of 100 samples still has 31 bits.
    most = UncertaintyStep(samples=100, seed=2**31 - 101, context_questions=1000)
    assert most.seed + most.samples == 2**31 - 1
    assert UncertaintyStep(samples=2, seed=0, context_questions=0).samples == 2


def test_the_sizes_of_the_context_test_that_are_offered():
    assert TESTED == (
        (0, "No questions"), (10, "10 questions"), (30, "30 questions"), (100, "100 questions"),
    )  # fmt: skip


def keyed_run(n=3, **more):
    """Return questions whose first passage is gold, with the word that answers each only there."""
    names = [f"q{i}" for i in range(n)]
    queries = pd.DataFrame(
        {"query_id": names, "question": [f"{q}?" for q in names], "answer": "x", "answer_status": "answered"}
    )
    passages = pd.DataFrame(
        [
            {"query_id": q, "passage_id": f"p{i}", "title": "", "text": f"{q} {'key' if i == 1 else 'rest'}",
             "retrieval_rank": i, "is_gold": i == 1}
            for q in names
            for i in (1, 2)
        ]
    )  # fmt: skip
    return Run.create({"source": "upload", **more}, queries=queries, passages=passages)


def reader(request):
    """Answer surely with the question's key in the prompt; else, at random, something else every time."""
    asked = request.messages[0].content
    question = asked.rsplit("Question: ", 1)[1].split("?")[0]
    return f"{question} key" if f"{question} key" in asked else f"guess {request.seed}"


def conditions(run):
    rows = run["context_samples"]
    return {
        (q, c): group.set_index("sample_id")["answer"].to_dict()
        for (q, c), group in rows.groupby(["query_id", "condition"])
    }


def test_some_questions_are_asked_again_with_other_passages():
    llm = ScriptedLLM(reader)
    found = fill(keyed_run(), UncertaintyStep(samples=3, context_questions=2), llm=llm)
    sure = dict.fromkeys(("baseline", "s1", "s2", "s3"), "q0 key")
    unsure = {"baseline": "guess 0", "s1": "guess 1", "s2": "guess 2", "s3": "guess 3"}
    given = conditions(found)
    assert given["q0", "without_support"] == unsure and given["q0", "unrelated_added"] == sure
    assert given["q0", "unchanged"] == {"baseline": "q0 key"}
    assert {q for q, _ in given} == {"q0", "q1"}
    # 3 samples of three questions, and of two: 3 and 3 more, and three answers at temperature 0.
    assert llm.calls == 3 * 3 + 2 * (3 + 3 + 3) and len(found["context_samples"]) == 18
    # Drawn as the samples were; at temperature 0 as any answer is.
    rows = found["context_samples"].set_index(["query_id", "condition", "sample_id"]).sort_index()
    drawn = found["samples"].set_index(["query_id", "sample_id"]).sort_index()
    settings = ["temperature", "top_p", "seed"]
    for condition in ("without_support", "unrelated_added"):
        pd.testing.assert_frame_equal(
            rows.loc[("q0", condition), settings].drop("baseline"), drawn.loc["q0", settings]
        )
        assert rows.loc[("q0", condition, "baseline"), settings].to_list() == [0.0, 1.0, 0]
    facts = found.manifest["steps"]["uncertainty"]
    assert facts["context_questions"] == 2 and facts["context_passed_over"] == {}


def test_a_row_says_what_was_in_the_prompt():
    llm = ScriptedLLM(reader)
    found = fill(keyed_run(), UncertaintyStep(samples=2, context_questions=1), llm=llm)
    rows = found["context_samples"].drop_duplicates("condition").set_index("condition")
    assert rows.loc["unchanged", "order"] == ["p1", "p2"]
    assert rows.loc["without_support", "order"] == ["p2"] and rows.loc["without_support", "order_of"] == [
        "q0"
    ]
    order, of = rows.loc["unrelated_added", ["order", "order_of"]]
    assert len(order) == 4 and sorted(of).count("q0") == 2
    texts = {(q, p): text for q, p, text in found.passages[["query_id", "passage_id", "text"]].to_numpy()}
    prompts = {request.messages[0].content for request in llm.requests}
    lines = [f"[{i}] {texts[q, p]}" for i, (q, p) in enumerate(zip(of, order, strict=True), start=1)]
    assert any("\n\n".join(lines) + "\n\nQuestion: q0?" in prompt for prompt in prompts)
    # The one that is left keeps its label.
    assert any("\n\n[2] q0 rest\n\nQuestion: q0?" in p and "[1]" not in p for p in prompts)


def test_more_questions_and_more_samples_keep_what_is_there():
    llm = ScriptedLLM(reader)
    one = fill(keyed_run(), UncertaintyStep(samples=2, context_questions=1), llm=llm)
    assert llm.calls == 3 * 2 + 7
    two = fill(one, UncertaintyStep(samples=2, context_questions=2), llm=llm)
    assert llm.calls == 3 * 2 + 2 * 7
    more = fill(two, UncertaintyStep(samples=4, context_questions=2), llm=llm)
    assert llm.calls == 3 * 4 + 2 * 11
    at_once = fill(keyed_run(), UncertaintyStep(samples=4, context_questions=2), llm=ScriptedLLM(reader))
    assert conditions(more) == conditions(at_once) and more["samples"].equals(at_once["samples"])
    # Less is there already; another seed begins anew.
    assert fill(more, UncertaintyStep(samples=2), llm=llm) is more
    anew = fill(more, UncertaintyStep(samples=2, seed=5, context_questions=1), llm=ScriptedLLM(reader))
    assert len(anew["context_samples"]) == 7 and len(anew["samples"]) == 6


def test_a_stopped_test_goes_on_and_asks_nothing_twice():
    llm, stopped = ScriptedLLM(reader), CompletionCache()
    step = UncertaintyStep(samples=3, context_questions=3)
    part = fill(keyed_run(), step, llm=llm, cache=stopped, cancelled=lambda: llm.calls >= 15)
    assert llm.calls == 15 and not part.manifest["steps"]["uncertainty"]["complete"]
    whole = fill(part, step, llm=llm, cache=stopped)
    assert len({(r.messages, r.seed, r.temperature) for r in llm.requests}) == llm.calls == 3 * 12
    assert conditions(whole) == conditions(fill(keyed_run(), step, llm=ScriptedLLM(reader)))


def test_a_prompt_that_is_too_long_leaves_its_condition_without_rows():
    def short_window(request):
        too_long = request.messages[0].content.count("[") > 2
        return Completion.failed("The prompt is too long.") if too_long else reader(request)

    llm = ScriptedLLM(short_window)
    found = fill(keyed_run(), UncertaintyStep(samples=2, context_questions=2), llm=llm)
    assert set(found["context_samples"]["condition"]) == {"unchanged", "without_support"}
    assert len(found["context_samples"]) == 2 * 4
    facts = found.manifest["steps"]["uncertainty"]
    assert (
        facts["notes"] == ["2 questions have not all answers of the context test."] and facts["n_left"] == 2
    )
    # Where it fits now, only what is missing is asked.
    other = ScriptedLLM(reader)
    assert (
        len(fill(found, UncertaintyStep(samples=2, context_questions=2), llm=other)["context_samples"]) == 14
    )
    assert other.calls == 2 * 3


def test_answers_to_another_prompt_make_room():
    run = keyed_run()
    llm = ScriptedLLM(reader)
    step = UncertaintyStep(samples=2, context_questions=1)
    done = fill(run, step, llm=llm)
    calls = llm.calls
    # The other passage turns out to be the gold one.
    marks = ~run.passages["is_gold"]
    changed = done.derive(passages=done.passages.assign(is_gold=marks))
    found = fill(fill(changed, UncertaintyStep(samples=3), llm=llm), UncertaintyStep(samples=3), llm=llm)
    assert len(found["context_samples"]) == 7  # who does not ask for the test keeps what there is
    again = fill(found, UncertaintyStep(samples=3, context_questions=1), llm=llm)
    rows = again["context_samples"].query("condition == 'without_support'")
    assert rows["order"].tolist() == 4 * [["p1"]] and len(again["context_samples"]) == 9
    # One more sample of three questions; of the first also four without support, and one with passages added.
    assert llm.calls == calls + 3 + 4 + 1


def test_questions_that_cannot_be_tested_are_counted():
    run = keyed_run()
    marks = run.passages["is_gold"] & (run.passages["query_id"] != "q0")
    run = run.derive(passages=run.passages.assign(is_gold=marks))
    found = fill(run, UncertaintyStep(samples=2, context_questions=1), llm=ScriptedLLM(reader))
    assert set(found["context_samples"]["query_id"]) == {"q1"}
    assert found.manifest["steps"]["uncertainty"]["context_passed_over"] == {"no_support": 1}
    assert not found.manifest["steps"]["uncertainty"]["notes"]


def test_the_plan_counts_the_calls_of_the_test():
    llm, step = ScriptedLLM(reader), UncertaintyStep(samples=3, context_questions=2)
    plan = plan_steps(keyed_run(), [step], {"uncertainty": llm})
    of_test = {
        "sample without support": 6,
        "sample with unrelated passages": 6,
        "context answer": 6,
    }
    assert dict(plan.calls) == {"sample": 9, **of_test}
    notes = plan.to_frame().set_index("item")["note"]
    assert notes["sample without support"] == "context test: the supporting passages left out"
    # Before there are answers it is a guess of the same size.
    new = keyed_run()
    new = new.derive(queries=new.queries.assign(answer=None, answer_status=None))
    assert dict(plan_steps(new, [step], {"uncertainty": llm}).calls) == {"sample": 9, **of_test}
    assert llm.calls == 0
    # Without answers nothing is tested.
    found = fill(new, step, llm=llm)
    assert found["context_samples"].empty and llm.calls == 9
    assert found.manifest["steps"]["uncertainty"]["context_passed_over"] == {"no_answer": 3}


def test_the_test_survives_saving(tmp_path):
    llm, step = ScriptedLLM(reader), UncertaintyStep(samples=2, context_questions=2)
    found = fill(keyed_run(), step, llm=llm)
    again = Run.load(found.save(tmp_path / "run"))
    assert again["context_samples"].equals(found["context_samples"])
    assert fill(again, step, llm=llm) is again


def test_a_withheld_answer_is_no_row():
    def withheld(request):
        return Completion("", "reasoning", 9, 2, 0.1) if request.seed == 1 else reader(request)

    found = fill(keyed_run(), UncertaintyStep(samples=2, context_questions=1), llm=ScriptedLLM(withheld))
    assert not (found["context_samples"]["sample_id"] == "s1").any()
    assert len(found["context_samples"]) == 5
