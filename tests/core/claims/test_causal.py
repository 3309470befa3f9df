import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.claims.causal import CAUSAL_LABELS, causal_labels, parse, parse_text, removal_matrix

nan = math.nan


def became(baseline, ablated, claim=None, question=""):
    return causal_labels([claim or baseline], [ablated], baseline, question)[0, 0]


def test_the_matrix_by_hand():
    baseline = "The cable was landed in Newfoundland in 1866. The Great Eastern laid it."
    claims = ["The cable was landed in Newfoundland in 1866.", "The Great Eastern laid the cable."]
    ablated = [
        baseline,
        "The cable was landed in Newfoundland in 1858. The Great Eastern laid it.",
        "The cable was landed in Newfoundland in 1866.",
        "I don't know.",
        "",
        None,
    ]
    assert causal_labels(claims, ablated, baseline).tolist() == [
        ["kept", "changed", "kept", "gone", "gone", "unknown"],
        ["kept", "kept", "gone", "gone", "gone", "unknown"],
    ]
    np.testing.assert_array_equal(
        removal_matrix(causal_labels(claims, ablated, baseline)), [[0, 1, 0, 1, 1, nan], [0, 0, 1, 1, 1, nan]]
    )


@pytest.mark.parametrize(
    ("baseline", "ablated", "expected"),
    [
        # one or two words: the whole answer is the value
        ("1866", "1865", "changed"),
        ("1866", "1866.", "kept"),
        ("1866", "It was landed in 1866.", "kept"),
        ("2", "1.5 hours", "changed"),
        ("2", "12", "changed"),
        ("18 days", "2", "changed"),
        ("1,000,000", "2,000,000", "changed"),
        ("1,000,000", "1 million", "kept"),
        ("10 million dollars", "10 billion dollars", "changed"),
        ("Chris Newhall", "Stephen Self", "changed"),
        ("Chris Newhall", "It was Chris Newhall.", "kept"),
        ("Paris", "", "gone"),
        ("Paris", "Not stated", "gone"),
        ("Paris", "I cannot find it in the passages.", "gone"),
        ("Yes", "No", "changed"),
        ("The island of Stromboli, also known as Vulcano", "Stromboli", "gone"),
        # numbers
        (
            "The HF-300 survives a depth of 3 metres for up to 60 minutes.",
            "The HF-300 can survive a depth of 1 metre for up to 30 minutes.",
            "changed",
        ),
        (
            "The HF-300 survives a depth of 3 metres for up to 60 minutes.",
            "The HF-300 can survive a depth of 3 metres for up to 60 minutes.",
            "kept",
        ),
        (
            "The HF-300 survives immersion in cold water.",
            "The HF-200 survives immersion in cold water.",
            "changed",
        ),
        ("It has seven floors.", "It has 7 floors.", "kept"),
        ("The bridge has fifteen arches.", "The bridge has 15 arches.", "kept"),
        ("The bridge has fifteen arches.", "The bridge has 50 arches.", "changed"),
        ("It carried twenty-five hundred men.", "It carries 2,500 men.", "kept"),
        ("The canal is 10 km long.", "The canal is 10,000 metres long.", "kept"),
        ("The canal is 10 km long.", "The canal is 10 miles long.", "changed"),
        ("It was landed on 27 July 1866.", "It was landed on 1866-07-27.", "kept"),
        ("It was landed on 27 July 1866.", "It was landed on 1866-07-28.", "changed"),
        ("The tower has seven floors.", "The tower has eight floors.", "changed"),
        ("The tower has 7 floors and a red roof.", "The tower has floors and a red roof.", "gone"),
        # names
        (
            "The Great Eastern was commanded by Captain James Anderson.",
            "The Great Eastern was commanded by Captain Edward Edwards.",
            "changed",
        ),
        (
            "The steamer crossed the ocean twice under Captain James Anderson.",
            "The steamer crossed the ocean twice under Captain Anderson.",
            "kept",
        ),
        # denials
        ("The glass floats on molten tin.", "The glass does not float on molten tin.", "changed"),
        ("The glass doesn’t float on molten tin.", "The glass floats on molten tin.", "changed"),
        ("No glass floats on molten tin.", "Glass floats on molten tin.", "changed"),
        ("The glass doesn't float on molten tin.", "The glass does not float on molten tin.", "kept"),
        ("The tower is tall.", "The tower is tall, but not red.", "kept"),
        ("The tower is tall and old.", "The tower is not only tall, it is old.", "kept"),
        # other words
        ("The glass floats on molten tin.", "The glass floats on molten lead.", "gone"),
        ("The glass floats on molten tin.", "Rolled sheets are polished on both sides afterwards.", "gone"),
    ],
)
def test_english(baseline, ablated, expected):
    assert became(baseline, ablated) == expected


@pytest.mark.parametrize(
    ("baseline", "ablated", "expected"),
    [
        ("Kênh Vĩnh Tế dài 87 km.", "Kênh Vĩnh Tế có chiều dài 87 km.", "kept"),
        ("Kênh Vĩnh Tế dài 87 km.", "Kênh Vĩnh Tế dài 91 km.", "changed"),
        ("Kênh Vĩnh Tế nối Châu Đốc với Hà Tiên.", "Kênh Vĩnh Tế không nối Châu Đốc với Hà Tiên.", "changed"),
        ("Ong sống trong không khí lạnh.", "Ong sống ở không khí lạnh.", "kept"),
        ("Người đào kênh là ông Thoại Ngọc Hầu.", "Người đào kênh là ông Nguyễn Văn Tường.", "changed"),
        ("Cầu có mười lăm nhịp.", "Cầu có 15 nhịp.", "kept"),
        ("Cầu có mười lăm nhịp.", "Cầu có năm mươi nhịp.", "changed"),
        ("Hồ Quang Cua", "Trần Tấn Phương", "changed"),
        ("Hồ Quang Cua", "Tôi không biết.", "gone"),
        ("1,5 triệu", "1.500.000", "kept"),
        ("Kênh Vĩnh Tế dài 87 km.", "Vịnh Hạ Long có nhiều hang động đẹp.", "gone"),
    ],
)
def test_vietnamese(baseline, ablated, expected):
    assert became(baseline, ablated) == expected


def test_composed_and_decomposed_accents_are_the_same():
    import unicodedata

    baseline = "Kênh Vĩnh Tế dài 87 km và nối Châu Đốc với Hà Tiên."
    ablated = unicodedata.normalize("NFD", "Kênh Vĩnh Tế nối Châu Đốc với Hà Tiên và dài 87 km.")
    assert became(baseline, ablated) == "kept"


@pytest.mark.parametrize(
    ("baseline", "ablated", "expected"),
    [
        ("大运河在2014年被列入世界遗产名录。", "大运河于2014年列入世界遗产名录。", "kept"),
        ("大运河在2014年被列入世界遗产名录。", "大运河在2013年被列入世界遗产名录。", "changed"),
        ("毕昇用胶泥刻活字。", "毕昇不用胶泥刻活字。", "changed"),
        ("毕昇没有用木头刻字。", "毕昇用木头刻字。", "changed"),
        ("二十一天", "21天", "kept"),
        ("大运河全长三百公里。", "大運河全長300公里。", "kept"),
        ("大运河全长三百公里。", "大运河全长400公里。", "changed"),
        ("二十一天", "十八天", "changed"),
        ("郭守敬", "马之贞", "changed"),
        ("郭守敬", "水源是郭守敬找到的。", "kept"),
        ("郭守敬", "我不知道。", "gone"),
        ("毕昇用胶泥刻活字。", "造纸术在汉代已经出现。", "gone"),
        ("长城非常长，石头很重。", "长城非常长，石头很重，未来也是。", "kept"),
    ],
)
def test_chinese(baseline, ablated, expected):
    assert became(baseline, ablated) == expected


@pytest.mark.parametrize(
    ("numeral", "number"),
    [("二十一天", "#21"), ("十八天", "#18"), ("一百零五米", "#105"), ("三万五千人", "#35000"), ("二〇一四年", "#2014"), ("统一的人名", None),
     ("三万五千名", "#35000"), ("1.5万", "#15000"), ("2亿", "#200000000")],
)  # fmt: skip
def test_chinese_numbers(numeral, number):
    assert parse(numeral).numbers == (frozenset({number}) if number else frozenset())


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,794", "#1794"),
        ("1.50", "#1.5"),
        ("1,234,567.5", "#1234567.5"),
        ("1.000.000", "#1000000"),
        ("2,5", "#2.5"),
        ("12 million", "#12000000"),
        ("１９", "#19"),
        ("twelve", "#12"),
        ("1.2.3.4", "#1234"),
        ("0", "#0"),
    ],
)
def test_numbers_in_any_notation(text, number):
    assert parse(text).numbers == {number}


@pytest.mark.parametrize(
    "text", ["1 " + "trillion " * 90_000, "9" * 50_000, "万" * 9_000 + "年", "二" * 9_000 + "年"]
)
def test_numbers_without_end_are_cut(text):
    (number,) = parse(text).numbers
    assert len(number) < 400


def test_the_words_of_the_question_say_nothing():
    question = "Which lake holds a fifth of the world's fresh water?"
    assert became("Lake Baikal", "Baikal", question=question) == "kept"
    full = "The lake that holds a fifth of the world's fresh water is Baikal."
    assert became(full, "Baikal", question=question) == "kept"
    # The frame alone is not the claim.
    other = "The lake that holds a fifth of the world's fresh water is deep."
    assert became(full, other, question=question) == "changed"
    assert became(full, other) == "kept"  # without the question one word of six seems little
    # An answer made of the question's words only still has them to go by.
    assert became("The lake holds water.", "The lake holds water!", question=question) == "kept"


def test_a_claim_that_a_model_made_self_contained():
    question = "On what date was the cable of 1866 landed in Newfoundland?"
    claim = "The cable of 1866 was landed in Newfoundland on 27 July."
    found = causal_labels(
        [claim], ["27 July", "13 July", "12 August", "The cable was landed."], "27 July", question
    )
    assert found.tolist() == [["kept", "changed", "changed", "changed"]]


def test_what_the_baseline_does_not_say_is_unknown():
    labels = causal_labels(
        ["Wholly other things happened."], ["The glass is thin.", ""], "Glass floats on tin."
    )
    assert labels.tolist() == [["unknown", "gone"]]
    for baseline in (None, "", "I don't know.", "…"):
        assert np.isnan(removal_matrix(causal_labels(["Paris"], ["Paris", "", None], baseline))).all()


def test_nothing_to_compare():
    assert removal_matrix(causal_labels([], ["a", "b"], "a")).shape == (0, 2)
    assert removal_matrix(causal_labels(["a"], [], "a")).shape == (1, 0)
    np.testing.assert_array_equal(
        removal_matrix(np.array([["kept", "changed", "gone", "unknown"]], dtype=object)), [[0, 1, 1, nan]]
    )


def test_a_sentence_of_small_words_has_words_all_the_same():
    assert became("It is.", "It is.") == "kept"
    assert parse("It is.").words


texts = st.one_of(
    st.text(max_size=40),
    st.lists(
        st.sampled_from(
            "The glass floats not on tin 1866 seven million Unwin Paris , . không 87 km 毕昇 不 用 二十 天 -".split()
        ),
        max_size=10,
    ).map(" ".join),
)


@settings(max_examples=200)
@given(st.lists(texts, max_size=3), st.lists(st.none() | texts, max_size=4), st.none() | texts, texts)
def test_any_text_has_a_label_and_missing_answers_stay_unknown(claims, ablated, baseline, question):
    labels = causal_labels(claims, ablated, baseline, question)
    assert labels.shape == (len(claims), len(ablated))
    assert set(labels.ravel()) <= set(CAUSAL_LABELS)
    m = removal_matrix(causal_labels(claims, ablated, baseline, question))
    assert (np.isnan(m) == (labels == "unknown")).all()
    for j, answer in enumerate(ablated):
        if answer is None:
            assert np.isnan(m[:, j]).all()
        elif answer == baseline:
            assert not (m[:, j] == 1).any()  # the same answer says the same


@given(st.lists(texts, min_size=1, max_size=3), st.lists(texts, min_size=1, max_size=4), texts)
def test_each_cell_stands_for_itself(claims, ablated, baseline):
    labels = causal_labels(claims, ablated, baseline)
    again = causal_labels(claims[::-1], ablated[::-1], baseline)
    assert again[::-1, ::-1].tolist() == labels.tolist()


def test_a_text_read_as_a_whole_is_its_sentences_together():
    text = "Glass floats on tin. Unwin built 12 houses."
    assert (
        parse_text(text).words == parse("Glass floats on tin.").words | parse("Unwin built 12 houses.").words
    )


def test_a_number_that_is_only_in_the_question_takes_no_ones_place():
    said, other = "Unwin built the bridge in 1903.", "Unwin built the bridge before 1950."
    assert became(said, other, question="When was it built?") == "changed"
    assert became(said, other, question="Was the bridge built before 1950?") == "gone"


def test_a_number_that_the_baseline_has_elsewhere_takes_no_ones_place():
    baseline = "Unwin built the bridge in 1903. It has 12 arches."
    claim = "Unwin built the bridge in 1903."
    assert became(baseline, "Unwin built the bridge with 12 arches.", claim) == "gone"
    assert became(baseline, "Unwin built the bridge with 11 arches.", claim) == "changed"


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        # The capital at the start proves nothing, unless another follows it.
        ("Mills were built by Raymond Unwin in Letchworth.", {"unwin", "letchworth"}),
        ("Raymond Unwin built it.", {"unwin"}),
        ("the old mill is by the river", set()),
        ("It was built by The Firm of 1903.", {"firm"}),
        ("Unwin.", {"unwin"}),
    ],
)
def test_names_are_the_last_words_of_runs_of_capitals(sentence, names):
    assert parse(sentence).names == names
