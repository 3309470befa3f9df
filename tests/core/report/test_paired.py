"""Two runs in pairs, with values worked out on paper."""

import json
import math

import pandas as pd
import pytest

from core.answers.diagnostic import ANSWERS
from core.attribution.diagnostic import ATTRIBUTION
from core.diagnosis import Diagnosis
from core.influence.diagnostic import INFLUENCE
from core.losses.diagnostic import LOSSES
from core.report.compare import sides_of
from core.report.paired import (
    answer,
    comparison_facts,
    comparison_text,
    pairs_of,
    regressions,
    regressions_facts,
    regressions_text,
)
from core.run import Run
from core.socket import QuestionColumn
from tests.core.report.signal_runs import diagnosis_of

RIGHT, WRONG = "It opened in 1931.", "It opened in 1902."
ORDERED, REVERSED = [0.9, 0.5, 0.1, 0.05], [0.1, 0.5, 0.9]


def make_run(correct, influences=ORDERED, name="Run", k=3):
    """One question per letter of ``correct``: + right, - wrong, . without a reference answer."""
    n = len(correct)
    ids = [f"q{i}" for i in range(n)]
    queries = pd.DataFrame(
        {
            "query_id": ids,
            "question": [f"When did bridge {i} open?" for i in range(n)],
            "answer": [WRONG if sign == "-" else RIGHT for sign in correct],
            "answer_status": "answered",
            "reference_answers": [None if sign == "." else ["1931"] for sign in correct],
        }
    )
    values = influences if isinstance(influences[0], list) else [influences] * n
    passages = pd.DataFrame(
        [
            (q, f"p{i}", i + 1, value)
            for q, row in zip(ids, values, strict=True)
            for i, value in enumerate(row[:k])
        ],
        columns=["query_id", "passage_id", "retrieval_rank", "influence_score"],
    )
    return Run.create({"source": "live", "name": name}, queries=queries, passages=passages)


def sides(*runs):
    return sides_of([Diagnosis(run) for run in runs])


def pair(*runs):
    return pairs_of(sides(*runs))[0]


def found(pair, key):
    return next(one for one in pair.differences if one.key == key)


def test_correct_answers_in_pairs_by_hand():
    # Of 10 answers 6 turn right and 1 turns wrong; one question has no reference answer.
    both = pair(make_run("------++++."), make_run("+++++++++-."))
    correct = found(both, "answers.correct")
    assert correct.n == 10
    assert correct.counts == {"better": 6, "worse": 1, "same": 3}
    assert correct.means == pytest.approx((0.4, 0.9)) and correct.mean == pytest.approx(0.5)
    # Exact sign test of 1 in 7: 2 (1 + 7) / 128; the other numbers are all equal (p = 1), so Holm takes the
    # smallest as many times as there are numbers.
    assert correct.p_value == pytest.approx(min(1, len(both.differences) * 16 / 128))
    half = 1.959964 * math.sqrt((7 / 12 + 2 / 12 - (5 / 12) ** 2) / 12)
    assert correct.interval == pytest.approx((5 / 12 - half, 5 / 12 + half), abs=1e-4)
    assert list(correct.rows["change"]) == ["better"] * 6 + ["same"] * 3 + ["worse"]
    assert answer(both)[0] == (
        "Run B is correct in 5 more of 10 questions (difference +50 points, −1 to +85): 6 questions became "
        "correct, 1 stopped being correct (p = 0.12, exact McNemar test, n = 10; "
        f"{correct.p_text} adjusted for all numbers); chance alone could explain it."
    )
    assert correct.p_alone == pytest.approx(16 / 128)
    assert answer(both)[1].startswith("None of the 3 other numbers differs")


def with_tokens(run, prompt, completion=10):
    n = len(run.queries)
    return run.derive(
        {}, queries=run.queries.assign(prompt_tokens=[prompt] * n, completion_tokens=[completion] * n)
    )


@pytest.mark.parametrize(
    ("a", "b", "tokens", "sentence"),
    [
        # 100 questions, 3 turn right and 3 wrong: the interval is about -5 to +5 points.
        ("-" * 50 + "+" * 50, "---" + "-" * 44 + "+++" + "---" + "+" * 47, (2240, 440),
         "Run B is equally often correct as run A within chance, at about a fifth of the tokens (450 instead of 2,250 "
         "for an answer)."),
        ("-" * 30, "+" * 30, (490, 490),
         "Run B is more often correct than run A, at the same number of tokens (500 instead of 500 for an answer)."),
        ("+" * 30, "-" * 30, (490, 990),
         "Run B is less often correct than run A, at 2.0 times the tokens (1,000 instead of 500 for an answer)."),
        ("+-+-", "+-+-", (990, 690),
         "Run B is exactly as often correct as run A, at 70 % of the tokens (700 instead of 1,000 for an answer)."),
        # 6 better and 1 worse of 10: 40 and 90 % are not called equal.
        ("------++++", "+++++++++-", (990, 490),
         "Run B is not demonstrably more or less often correct than run A, at about half of the tokens (500 instead of "
         "1,000 for an answer)."),
    ],
)  # fmt: skip
def test_it_leads_with_correctness_and_cost(a, b, tokens, sentence):
    """The page said nothing of cost: the same answers at a fifth of the tokens read as 'too few changes to tell'."""
    runs = [with_tokens(make_run(letters), n) for letters, n in zip((a, b), tokens, strict=True)]
    assert answer(pair(*runs))[0] == sentence
    assert not answer(pair(make_run(a), make_run(b)))[0].startswith(sentence[:20])  # tokens are not known


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (940, "94 % of the tokens"), (950, "the same number of tokens"), (1_050, "the same number of tokens"),
        (1_060, "1.1 times the tokens"), (600, "60 % of the tokens"), (480, "about half of the tokens"),
        (330, "about a third of the tokens"), (260, "about a quarter of the tokens"), (143, "14 % of the tokens"),
        (100, "about a tenth of the tokens"),
    ],
)  # fmt: skip
def test_how_many_tokens_there_are_for_a_thousand(tokens, said):
    runs = (with_tokens(make_run("+-+-"), n, 0) for n in (1_000, tokens))
    (both,) = pairs_of(sides_of([Diagnosis(run, diagnostics=[ANSWERS]) for run in runs]))
    assert answer(both)[0].split(", at ")[1] == f"{said} ({tokens:,} instead of 1,000 for an answer)."


@pytest.mark.parametrize(
    ("a", "b", "sentence"),
    [
        ("-" * 20, "+" * 20, "Run B is correct in 20 more of 20 questions (difference +100 points, "),
        ("+" * 20, "-" * 20, "Run B is correct in 20 fewer of 20 questions (difference −100 points, "),
        ("++--", "++--", "Runs A and B are correct in the same 2 of 4 questions."),
        (
            "+-+",
            "-++",
            "Runs A and B are correct in equally many of 3 questions (2 each): 1 question became correct, 1 stopped",
        ),
    ],
)
def test_the_first_sentence(a, b, sentence):
    assert answer(pair(make_run(a), make_run(b)))[0].startswith(sentence)


def test_the_verdict_is_that_of_the_test():
    ends = {
        "more than chance explains.": ("-" * 20, "+" * 20),
        "chance alone could explain it.": ("------++", "++++++--"),
        "too few changes to tell.": ("-----+++", "++++++++"),  # even 5 of 5 has p = 0.06
    }
    for end, (a, b) in ends.items():
        assert answer(pair(make_run(a), make_run(b)))[0].endswith(end)


def test_a_number_without_direction_is_higher_or_lower_and_never_better():
    both = pair(make_run("." * 12), make_run("." * 12, REVERSED))
    rho = found(both, "influence.rho")
    assert rho.counts == {"higher": 0, "lower": 12, "same": 0}
    assert rho.mean == -2 and rho.range_text == "—"  # all differences are equal: no interval
    sentence = answer(both)[0]
    assert "ρ is on average 2.00 lower in run B (—, p = 0.0015, n = 12)" in sentence
    assert "better" not in sentence and "worse" not in sentence


def test_a_rank_is_better_when_it_is_lower():
    a, b = make_run("..", [ORDERED, REVERSED]), make_run("..", [REVERSED, ORDERED])
    gold = [Run.create(run.manifest, queries=run.queries, passages=run.passages.assign(is_gold=run.passages["passage_id"] == "p0")) for run in (a, b)]  # fmt: skip
    rank = found(pair(*gold), "retrieval_quality.gold_influence_rank")
    assert list(rank.rows["a"]) == [1, 3] and list(rank.rows["change"]) == ["worse", "better"]


def test_what_the_number_of_passages_moves_is_marked_and_not_in_the_answer():
    both = pair(make_run("." * 20, k=3), make_run("." * 20, k=4))
    dominance = found(both, "influence.dominance")
    assert dominance.is_clear and dominance.moved_by_passages
    assert not found(both, "influence.rho").moved_by_passages
    assert "Dominance" not in " ".join(answer(both))


def test_a_run_of_one_question_has_as_many_passages_for_it_as_one_of_two():
    runs = (
        Diagnosis(make_run(signs), diagnostics=[ANSWERS, LOSSES, ATTRIBUTION, INFLUENCE])
        for signs in (".", "..")
    )
    (both,) = pairs_of(sides_of([*runs]))
    assert len(both.differences) == 3 and not any(one.moved_by_passages for one in both.differences)


@pytest.mark.parametrize(
    ("higher_is", "a", "b", "said"),
    [
        ("", [1.0, 2.0], [1.0, 2.0], "Size is the same in both runs."),
        # Even if all five went one way, p would be 2 / 2^5 = 0.0625; of six it would be 0.03.
        ("", [0.0] * 5, [1.0] * 5, "Size is on average 1.0 higher in run B (—, p = 0.062, n = 5): too few changes to tell."),
        # By Student: 1/6 +- 2.571 sqrt(1.767 / 6).
        ("", [0.0] * 6, [2, 1, 1, -1, -1, -1.0], "Size is on average 0.2 higher in run B (−1.2 to +1.6, p = 1, n = 6): chance alone could explain it."),
        ("", [0.0] * 2, [1, -1.0], "Size is on average the same in both runs (−12.7 to +12.7, p = 1, n = 2): too few changes to tell."),
        ("better", [0.0] * 10, [-1.0] * 10, "Of the 1 number, these differ by more than chance explains: Size is on average 1.0 lower (worse) in run B (—, p = 0.002, n = 10)."),
        ("worse", [0.0] * 10, [-1.0] * 10, "Of the 1 number, these differ by more than chance explains: Size is on average 1.0 lower (better) in run B (—, p = 0.002, n = 10)."),
    ],
)  # fmt: skip
def test_a_single_number_is_named_with_what_the_test_says_of_it(higher_is, a, b, said):
    column = QuestionColumn("size", "Size", "{:.1f}", higher_is=higher_is)
    both = pairs_of(sides_of([diagnosis_of((column,), size=values) for values in (a, b)]))[0]
    assert answer(both) == (said,)


def test_claim_uncertainty_falls_with_fewer_passages_by_itself():
    # A mean over the passages: of 10 in the one run, of 5 in the other.
    runs = [Run.load(f"sample_data/{name}") for name in ("recorded_run", "recorded_run_short")]
    both = pair(*runs)
    assert found(both, "claims.mean_uncertainty").moved_by_passages
    assert not found(both, "claims.grounding").moved_by_passages
    assert "Claim uncertainty U" not in " ".join(answer(both))


def test_holm_counts_the_numbers_of_all_pairs():
    a, b, c = make_run("-" * 10), make_run("+" * 10), make_run("-" * 10)
    alone, together = pairs_of(sides(a, b)), pairs_of(sides(a, b, c))
    assert [p.sides[1].letter for p in together] == ["B", "C"]
    raw = 2 / 2**10
    for pairs in (alone, together):
        n = sum(len(p.differences) for p in pairs)
        assert found(pairs[0], "answers.correct").p_value == pytest.approx(n * raw)


def test_nothing_in_common_to_compare():
    empty = Run.create({"source": "upload"}, queries=pd.DataFrame({"query_id": ["q"], "question": ["Why?"]}))
    both = pair(empty, empty)
    assert both.differences == () and answer(both) == ()


def test_text_and_json_say_the_same():
    runs = sides(make_run("-----+++", name="One"), make_run("++++++++", name="Two"))
    facts = comparison_facts(runs)
    json.dumps(facts, allow_nan=False)
    assert [run["name"] for run in facts["runs"]] == ["One", "Two"]
    (only,) = facts["comparisons"]
    assert (only["a"], only["b"], only["n_shared"]) == ("A", "B", 8)
    correct = only["numbers"][0]
    assert correct["counts"] == {"better": 5, "worse": 0, "same": 3}
    assert correct["questions"][0] == {"query_id": "q0", "a": 0.0, "b": 1.0, "change": "better"}
    text = comparison_text(runs)
    assert all(sentence in text for sentence in only["answer"]) and "n = 8: 5 better, 0 worse, 3 same" in text


def test_what_only_says_again_is_not_tested():
    from tests.core.conformal.conformal_runs import planted

    runs = [planted([same, 8, 7] * 4, [True] * 12, [True] * 6 + [False] * 6) for same in (9, 2)]
    (pair,) = pairs_of(sides_of([Diagnosis(run) for run in runs]))
    tested = {one.column.name for one in pair.differences}
    assert "agreement" in tested and not tested & {"agreement_rouge_l", "p_value", "set_size"}


def test_what_became_worse_is_listed_the_worst_first():
    """Of two answers that stop being correct that comes first whose passages changed for the worse, too."""
    a = make_run("+++-+-", name="Old\x1b[2J")
    b = make_run("+---++", [*[ORDERED] * 2, REVERSED, *[ORDERED] * 3], name="New", k=3)
    both = pair(gold_at(a, 0), gold_at(b, 0))
    correct = found(both, "answers.correct")
    assert both.outcome is correct and correct.counts == {"better": 1, "worse": 2, "same": 3}
    rows = regressions(both, correct)
    # q2's gold passage falls from influence rank 1 to 3; q1 changes its answer alone.
    assert rows["query_id"].tolist() == ["q2", "q1"]
    assert rows["also"].tolist() == [["Gold passage: influence rank: 1 → 3"], []]
    assert rows[["answer_A", "answer_B"]].to_numpy().tolist() == [[RIGHT, WRONG]] * 2
    assert [correct.change_text(word) for word in ("better", "worse", "same")] == [
        "▲ now correct", "▼ no longer correct", "= same",
    ]  # fmt: skip
    # 1 fixed and 2 broken: two-sided p of 1 in 3 = 2 (1 + 3) / 8.
    assert correct.fixes_and_harms.startswith(
        "1 question became correct, 2 stopped being correct (p = 1, exact McNemar test, n = 6"
    )
    assert [correct.change_text(word) for word in correct.rows["change"]].count("▲ now correct") == 1
    facts = regressions_facts(both.sides)
    [one] = facts["regressions"]
    assert (one["a"], one["b"]) == ("A", "B")
    assert (one["number"], one["n"], one["n_better"], one["n_worse"], one["p_value"]) == (
        "Correct",
        6,
        1,
        2,
        1,
    )
    assert [row["query_id"] for row in one["questions"]] == ["q2", "q1"]
    assert json.dumps(facts)
    text = regressions_text(both.sides)
    assert f"q2: When did bridge 2 open?\n  A: {RIGHT}\n  B: {WRONG}\n  Also worse: Gold passage" in text


def gold_at(run, place):
    gold = run.passages["passage_id"].eq(f"p{place}")
    return run.derive({"run_id": run.run_id}, passages=run.passages.assign(is_gold=gold))


def test_without_reference_answers_support_decides():
    def supported(*probabilities):
        run = make_run("." * len(probabilities))
        ids = run.queries["query_id"]
        claims = pd.DataFrame({"query_id": ids, "claim_id": "c1", "text": "It opened.", "side": "answer"})
        support = run.passages[["query_id", "passage_id"]].assign(claim_id="c1", probability=0.1)
        support.loc[support["passage_id"].eq("p0"), "probability"] = list(probabilities)
        return run.derive({"run_id": f"run {probabilities}"}, claims=claims, support=support)

    both = pair(supported(0.9, 0.9, 0.1), supported(0.9, 0.1, 0.1))
    assert both.outcome.key == "claims.grounding"
    # One of three answers has no supported claim any more.
    assert both.outcome.fixes_and_harms.startswith(
        "Grounding is better in 0 questions, worse in 1 (p = 1, sign-"
    )
    assert regressions(both, both.outcome)["query_id"].tolist() == ["q1"]


def test_what_became_worse_comes_after_the_settings_that_differ():
    runs = (make_run("+-").derive({"model": {"name": name}}) for name in ("small", "large"))
    lines = regressions_text(sides_of([Diagnosis(run, diagnostics=[ANSWERS]) for run in runs])).split("\n")
    assert lines[2:5] == [
        "  Model: A small, B large",
        "",
        "Run B against run A: 0 questions became correct, 0 stopped being correct (p = 1, exact McNemar test, n = 2).",
    ]


def test_where_neither_is_known_it_says_so():
    both = sides(make_run(".."), make_run(".."))
    assert regressions_facts(both)["regressions"] == [{"a": "A", "b": "B", "number": None}]
    assert "neither correctness nor support" in regressions_text(both)
