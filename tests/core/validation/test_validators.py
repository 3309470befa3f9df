"""Settings of validators, the numbers behind their reasons, the score, and the call for a serving path."""

from __future__ import annotations

import json

import pytest

from core.errors import InputError
from core.validation import (
    Case,
    CitationRequired,
    Code,
    ConfidenceValidator,
    EthicsAdapter,
    EvidenceOverlap,
    FallbackHandler,
    NumericUnits,
    NumericUnitsBasic,
    Severity,
    ValidatorChain,
    Wording,
    default_chain,
    validate,
)
from core.validation.figures import check_figures
from core.validation.step import ValidationStep
from core.validation.types import overlap

BRIDGE = "The Halden Bridge was designed by Ada Unwin."
TWO = [BRIDGE, "Coffee grows in the south."]


@pytest.fixture(autouse=True)
def defaults(monkeypatch):
    monkeypatch.delenv("ENABLE_VALIDATORS", raising=False)
    monkeypatch.delenv("VALIDATOR_EVIDENCE_THRESHOLD", raising=False)


def by_name(outcome):
    return {verdict.validator: verdict for verdict in outcome.verdicts}


def test_an_answer_that_was_not_asked_to_cite_may_still_cite_nothing_unknown():
    chain = ValidatorChain([CitationRequired(asked=False)])
    bare, wrong = (
        validate("Who?", f"Ada Unwin designed it{cited}.", TWO, chain=chain) for cited in ("", " [7]")
    )
    assert (bare.passed, bare.verdicts[0].reason.code) == (True, Code.NOT_APPLICABLE)
    assert wrong.verdicts[0].reason.code == Code.UNKNOWN_CITATION


# ---- the guard


def guarded(guard):
    chain = default_chain(guard=guard)
    return validate("Who?", "Ada Unwin designed it [1].", TWO, chain=chain)


def test_a_guard_decides_on_question_and_answer():
    seen = []
    accepted = guarded(lambda question, answer: seen.append((question, answer)) or True)
    assert seen == [("Who?", "Ada Unwin designed it [1].")]
    assert by_name(accepted)["EthicsAdapter"].passed is True and accepted.passed is True
    rejected = guarded(lambda question, answer: False)
    verdict = by_name(rejected)["EthicsAdapter"]
    assert (verdict.passed, verdict.severity, verdict.reason.code) == (
        False,
        Severity.CRITICAL,
        Code.GUARD_REJECTED,
    )
    assert rejected.critical


def test_a_guard_that_fails_lets_nothing_through():
    def broken(question, answer):
        raise RuntimeError("no network")

    verdict = by_name(guarded(broken))["EthicsAdapter"]
    assert (verdict.passed, verdict.severity, verdict.reason.code) == (
        False,
        Severity.CRITICAL,
        Code.GUARD_FAILED,
    )
    assert "network" not in verdict.sentence


# ---- settings


def test_the_order_of_the_chain_is_the_order_of_the_verdicts():
    names = [verdict.validator for verdict in validate("Who?", "Ada Unwin", TWO).verdicts]
    assert names == [
        "CitationRequired", "EvidenceOverlap", "NumericUnits", "ConfidenceValidator", "EthicsAdapter",
    ]  # fmt: skip
    chain = ValidatorChain((NumericUnits(), CitationRequired()))
    given = validate("Who?", "Ada Unwin", TWO, chain=chain).verdicts
    assert [verdict.validator for verdict in given] == ["NumericUnits", "CitationRequired"]


def test_uncertainty_need_not_be_required():
    plain, sure = Case("", "Brunel built it.", ()), Case("", "Definitely Brunel.", ())
    off = ConfidenceValidator(require_uncertainty_when_no_context=False)
    assert ConfidenceValidator().check(plain).passed is False
    assert off.check(plain).passed is True
    assert off.check(sure).passed is False
    assert off.check(Case("", "", ())).reason.code is Code.EMPTY_ANSWER


def test_a_hedge_beside_a_claim_of_certainty_does_not_help():
    answer = "Perhaps it is old; Brunel definitely built it."
    assert ConfidenceValidator().check(Case("", answer, ())).reason.code is Code.OVERCONFIDENT


@pytest.mark.parametrize("answer", ["I am definitely not sure.", "Tôi không thể trả lời chắc chắn."])
def test_a_certain_doubt_is_a_doubt(answer):
    assert ConfidenceValidator().check(Case("", answer, ())).reason.code is Code.UNCERTAINTY_EXPRESSED


def test_the_share_of_the_best_passage_is_the_number_of_the_reason():
    # bridge, built, Ada, Unwin: three of the four are in the first passage, none in the second.
    case = Case("", "The bridge was built by Ada Unwin.", tuple(TWO))
    assert EvidenceOverlap().check(case).reason == (Code.FINE, 0.75)
    assert EvidenceOverlap(threshold=0.75).check(case).passed is True
    assert EvidenceOverlap(threshold=0.76).check(case).passed is False
    assert EvidenceOverlap().check(Case("", "Tea", tuple(TWO))).reason == (Code.LOW_OVERLAP, 0.0)


def test_passages_are_not_added_up():
    assert overlap("Unwin grows coffee", ["Unwin", "coffee grows"]) == pytest.approx(2 / 3)


def test_chinese_is_compared_by_pairs_of_ideographs():
    # 赵州, 州桥 and 李春 of 赵州, 州桥, 桥李, 李春; single ideographs would all be there.
    assert overlap("赵州桥李春", ["李春造赵州桥"]) == pytest.approx(3 / 4)
    assert overlap("春", ["春天"]) == 0.0
    assert overlap("春", ["a 春 b"]) == 1.0


def test_nothing_is_compared_with_nothing():
    assert overlap("", ["text"]) is None and overlap("of the", ["text"]) is None
    assert overlap("text", []) is None


def test_passages_count_from_nought_or_one_and_blank_ones_keep_their_number():
    passages = ("", BRIDGE)
    cites = {n: CitationRequired().check(Case("", f"Ada Unwin [{n}].", passages)).passed for n in range(4)}
    assert cites == {0: True, 1: True, 2: True, 3: False}


def test_a_citation_that_is_not_known_is_marked():
    answer = "Ada Unwin designed it [1][7]."
    verdict = CitationRequired().check(Case("", answer, (BRIDGE,)))
    assert verdict.reason == (Code.UNKNOWN_CITATION, 1)
    assert [answer[start:end] for start, end in verdict.spans] == ["[7]"]


# ---- numbers

FIGURES = [
    ("about 95 km", "100 km", 0),  # 5.3 % of what is said
    ("about 96 km", "100 km", 1),
    ("96 km", "100 km", 0),
    ("2.5 kg", "2.47 kg", 1),
    ("2.5 kg", "2.44 kg", 0),
    ("250 km", "250.4 km", 1),
    ("250 km", "251 km", 0),
    ("5 km", "5.4 km", 0),  # rounds to 5, but is 8 % away
    ("620 miles", "1,000 km", 1),  # 621.4
    ("600 miles", "1,000 km", 0),
    ("20 °C", "68 °F", 1),
    ("68 °F", "20 °C", 1),
    ("22 °C", "68 °F", 0),
    ("20.1 °C", "68 °F", 0),  # 20.0
    ("36.56 °C", "97.8 °F", 1),  # 65.8 / 1.8 = 36.5556
    ("36.55 °C", "97.8 °F", 0),
    ("about 21 °C", "68 °F", 1),
    ("1,500 km", "length: 1,510", 0),
    ("1,500 km", "length: 1,500", 1),
    ("12 months", "one year and 1 year", 1),
    ("15 arches", "length_km: 15", 1),
    ("15 km", "length: 15", 1),
    ("15 km", "15 arches", 0),
    ("15 arches", "15 km", 0),
    ("$3 million", "3,000,000 dollars", 1),
    ("€3 million", "$3 million", 0),
    ("two reasons", "nothing", None),
    ("four reasons", "nothing", 0),
    ("the 19th century", "nothing", None),
    ("in March 1901", "5 March 1901", 1),
    ("on 5 March 1901", "March 1901", 0),
    ("on 5 March 1901", "On 5 March of the year 1901", 1),
    ("on 5 March 1902", "On 5 March of the year 1901", 0),
    ("on 05/03/2024", "3 May 2024", 1),  # may be either
    ("in 1901", "a ticket number 1901", 1),
    ("1901 people", "in 1901", 0),
]


@pytest.mark.parametrize(("answer", "passage", "supported"), FIGURES)
def test_a_number_with_its_unit_needs_one_like_it(answer, passage, supported):
    found = check_figures(f"It is {answer} or so.", [passage])
    if supported is None:
        assert found.n == 0
    else:
        assert (found.n, len(found.unsupported)) == (1, 1 - supported)


def test_a_number_of_the_question_is_given():
    question = "Which town is 50 mi north of Columbus?"
    assert check_figures("Marion, 50 mi north.", ["Marion is a town."], question).unsupported == ()
    assert len(check_figures("Marion, 60 mi north.", ["Marion is a town."], question).unsupported) == 1


# ---- the score

SURE = "Definitely Brunel."
SCORES = [
    (SURE, [], 0.1),
    (SURE, ["Coffee.", "Tea."], 0.1),
    ("Perhaps Brunel.", [], 0.3),  # 0.2 and passed
    ("Ada Unwin designed it [1].", [BRIDGE], 0.6),  # 0.5 and passed
    ("Ada Unwin designed it [1].", TWO, 0.9),  # 0.8 and passed
    ("Ada Unwin designed it.", [BRIDGE], 0.3),  # no citation
    ("Ada Unwin designed it.", TWO, 0.6),
    ("Ada Unwin designed 9 of them [1].", [BRIDGE], 0.4),  # a number
    ("Ada Unwin designed 9 of them [1].", TWO, 0.7),
    ("Ada Unwin designed 9 of them.", TWO, 0.6),  # the larger of both
    ("Perhaps Brunel [1].", ["Coffee."], 0.35),  # low overlap alone: it hedges
    ("Perhaps Brunel [1].", ["Coffee.", "Tea."], 0.65),
]


@pytest.mark.parametrize(("answer", "passages", "score"), SCORES)
def test_the_score_follows_its_rule(answer, passages, score):
    assert validate("Who?", answer, passages).confidence_score == score


# ---- the outcome


def test_the_outcome_is_what_the_response_model_asks_for():
    outcome = validate("Who  built\nit?", "Brunel did, in 12 days.", ["Coffee.", " "])
    assert json.loads(json.dumps(outcome.validation_info)) == {
        "passed": False,
        "reasons": ["missing_citation", "low_overlap", "unsupported_number", "missing_uncertainty"],
        "used_fallback": False,
        "confidence_score": 0.1,
        "context_docs_count": 1,
    }
    assert outcome.learning_suggestions == (
        "Add sources that answer: Who built it?",
        "Check against a source: 12 days",
    )
    assert validate("Who?", "Ada Unwin designed it [1].", TWO).learning_suggestions == ()


def test_suggestions_are_in_the_language_of_the_question_or_the_one_given():
    def said(question, lang=None):
        return validate(question, "Brunel", [], lang).learning_suggestions[0].split("：")[0].split(":")[0]

    assert said("Ai xây cầu?") == "Bổ sung nguồn trả lời cho"
    assert said("谁造的？") == "补充能回答以下问题的资料"
    assert said("誰造的？") == "補充能回答以下問題的資料"
    assert said("Who built it?", "vi") == "Bổ sung nguồn trả lời cho"


def test_numbers_without_a_source_are_listed():
    said = validate("Who?", "Ada Unwin made 12 or 14 [1].", TWO).learning_suggestions
    assert said == ("Check against a source: 12, 14",)
    twice = validate("Who?", "Ada Unwin made 12, or 14, or 12 [1].", TWO)
    assert twice.learning_suggestions == said, "each once"
    assert by_name(twice)["NumericUnits"].sentence == "3 of 3 numbers are not in the passages."
    said = validate("谁造的？", "李春造了12座或14座[1]。", ["李春造桥。"]).learning_suggestions
    assert said == ("请核对来源：12、14",)


def test_a_long_question_is_cut():
    (said,) = validate("why " * 100, "Brunel", []).learning_suggestions
    assert said.endswith("…") and len(said) == len("Add sources that answer: ") + 120


def test_a_question_too_short_to_tell_leaves_it_to_the_answer():
    assert validate("15?", "Không có đủ thông tin.", []).lang == "vi"


def test_validators_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("ENABLE_VALIDATORS", "False")
    outcome = validate("Who?", SURE, [BRIDGE])
    assert (outcome.passed, outcome.verdicts, outcome.confidence_score) == (None, (), 0.5)
    assert (outcome.critical, outcome.learning_suggestions) == (False, ())
    monkeypatch.setenv("ENABLE_VALIDATORS", "true")
    assert validate("Who?", SURE, []).passed is False


def test_the_threshold_comes_from_the_environment(monkeypatch):
    answer = "The bridge was built by Ada Unwin [1]."  # overlap 0.75
    monkeypatch.setenv("VALIDATOR_EVIDENCE_THRESHOLD", "0.8")
    failed = {verdict.reason.code for verdict in validate("Who?", answer, TWO).failed}
    assert failed == {Code.LOW_OVERLAP, Code.MISSING_UNCERTAINTY}
    monkeypatch.setenv("VALIDATOR_EVIDENCE_THRESHOLD", "0.75")
    assert validate("Who?", answer, TWO).passed is True


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ENABLE_VALIDATORS", "perhaps"),
        ("VALIDATOR_EVIDENCE_THRESHOLD", "1%"),
        ("VALIDATOR_EVIDENCE_THRESHOLD", "1.5"),
        ("VALIDATOR_EVIDENCE_THRESHOLD", "nan"),
    ],
)
def test_a_setting_that_means_nothing_is_refused(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=name):
        validate("Who?", "Brunel", [])


def test_no_guard_is_no_verdict():
    assert EthicsAdapter().check(Case("", "Brunel", ())).passed is None


# --- answers in another language than their passages

ENGLISH = "The bridge over the river was designed by the engineers of the county council."


@pytest.mark.parametrize(
    ("question", "answer", "passage"),
    [
        ("Ai đã xây cây cầu này?", "Cây cầu do hội đồng quận thiết kế.", ENGLISH),
        ("这座桥是谁设计的？", "由郡议会的工程师设计。", ENGLISH),
        ("Who designed the bridge?", "The engineers of the council designed it.", "这座桥由郡议会的工程师设计。"),
        ("Qui a conçu ce pont ?", "Il a été conçu par les ingénieurs du comté.", ENGLISH),
        ("¿Cuál es la capital de Inglaterra?", "Londres", "London is the capital of England, on the Thames."),
        ("Кто построил мост?", "Инженеры графства.", ENGLISH),
    ],
)  # fmt: skip
def test_a_correct_answer_in_another_language_is_not_critical(question, answer, passage):
    """Was *critical*, with a fallback in its place: 0 % of its words are in an English passage."""
    outcome = validate(question, answer, [passage], chain=default_chain(citations=False))
    assert not outcome.critical and outcome.passed
    overlap = by_name(outcome)["EvidenceOverlap"]
    assert (overlap.passed, overlap.reason.code) == (None, Code.OTHER_LANGUAGE)
    assert "different languages" in overlap.sentence
    assert by_name(outcome)["ConfidenceValidator"].passed is None


@pytest.mark.parametrize(
    ("question", "answer", "passage"),
    [
        ("Who designed it?", "Isambard Brunel", ENGLISH),  # a name is in the language of its question
        ("这座桥是谁设计的？", "由布鲁内尔设计。", "咖啡生长在南方的山坡上。"),
        ("Bao nhiêu?", "1902", ENGLISH),  # numbers are of no language
        ("Ai xây cầu?", "Cầu do ông Nguyễn Văn Hai dựng.", "Cà phê được trồng ở miền nam đất nước."),
    ],
)
def test_in_the_same_language_it_still_is(question, answer, passage):
    outcome = validate(question, answer, [passage], chain=default_chain(citations=False))
    assert outcome.critical and by_name(outcome)["EvidenceOverlap"].reason.code == Code.LOW_OVERLAP


def test_certainty_in_another_language_is_not_called_groundless():
    outcome = validate(
        "谁设计了桥？", "肯定是郡议会的工程师。", [ENGLISH], chain=default_chain(citations=False)
    )
    assert not outcome.critical


# --- names that other collections of validators use


def test_a_chain_is_built_by_the_names_of_its_source():
    """``NumericUnitsBasic`` and ``EthicsAdapter(guard_callable=)`` did not exist."""
    chain = ValidatorChain(
        [
            CitationRequired(),
            EvidenceOverlap(threshold=0.01),
            NumericUnitsBasic(),
            ConfidenceValidator(require_uncertainty_when_no_context=True),
            EthicsAdapter(guard_callable=None),
        ]
    )
    outcome = validate("Who built it?", "Brunel did it in 1866.", [], chain=chain)
    assert outcome.validation_info == {
        "passed": False,
        "reasons": ["missing_citation", "missing_uncertainty_no_context"],
        "used_fallback": False,
        "confidence_score": 0.1,
        "context_docs_count": 0,
    }
    for name in ("guard", "guard_callable"):
        refused = EthicsAdapter(**{name: lambda question, answer: False}).check(Case("", "Brunel", ()))
        assert refused.reason.code == Code.GUARD_REJECTED


@pytest.mark.parametrize(
    ("lang", "known"), [("zh", "zh-Hans"), ("zh-CN", "zh-Hans"), ("zh-TW", "zh-Hant"), ("VI", "vi")]
)
def test_chinese_has_other_names(lang, known):
    """``lang="zh"`` was refused."""
    outcome = validate("谁设计了桥？", "由布鲁内尔设计。", [], lang)
    assert outcome.lang == known
    fallback = FallbackHandler().get_fallback_answer(
        original_answer="由布鲁内尔设计。",
        validation_result=outcome,
        ctx_docs=[],
        user_question="谁设计了桥？",
        detected_lang=lang,
    )
    assert fallback == FallbackHandler().serve("由布鲁内尔设计。", outcome, known).text
    assert ValidationStep(lang=lang).lang == known


def test_an_unknown_language_is_refused_with_the_list():
    """The fallback raised a KeyError."""
    names = "en, vi, zh-Hans, zh-Hant, zh, zh-CN, zh-TW"
    outcome = validate("Who built it?", "Brunel.", [])
    for refused in (
        lambda: FallbackHandler().get_fallback_answer("Brunel.", outcome, [], "Who?", "de"),
        lambda: FallbackHandler({"de": Wording("", "", "", "")}),
        lambda: validate("Wer?", "Brunel", [], "de"),
        lambda: ValidationStep(lang="de"),
    ):
        with pytest.raises(InputError, match=f"must be one of {names}, got 'de'"):
            refused()


def test_an_answer_that_may_be_shown_has_no_fallback():
    outcome = validate("Who designed it?", BRIDGE, TWO, chain=default_chain(citations=False))
    assert FallbackHandler().get_fallback_answer(BRIDGE, outcome, TWO, "Who?", "en") == BRIDGE
