"""Small files in the schema in which the data set stands on the hub."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.errors import BackendError, InputError
from core.pipeline import RunOptions
from core.pipeline.begin import PassageFinder
from core.sources import natural_questions
from core.sources.dataset import dataset_jsonl, read_dataset
from core.sources.natural_questions import load_natural_questions, plain_page

PAGE = (
    "<H1> Beaver </H1> <P> Beaver is a city in Utah , United States . </P> <P> It was settled in 1856 . </P>"
)


def record(number, spans, page=PAGE, question="where is beaver", yes_no=None, title="Beaver"):
    """One record; ``spans`` has one list of (first, last) tokens for each annotator."""
    tokens = page.split(" ") if page else []
    empty = {"start_token": [], "end_token": [], "start_byte": [], "end_byte": [], "text": []}
    annotators = []
    for answers in spans:
        annotators.append({name: [] for name in empty})
        for first, last in answers:
            annotators[-1]["start_token"].append(first)
            annotators[-1]["end_token"].append(last)
            annotators[-1]["start_byte"].append(10 * first)
            annotators[-1]["end_byte"].append(10 * last)
            annotators[-1]["text"].append(" ".join(tokens[first:last]))
    long_answer = {"start_token": 3, "end_token": 15, "start_byte": 0, "end_byte": 9, "candidate_index": 0}
    return {
        "id": str(number),
        "document": {
            "title": title,
            "url": "https://example.org/wiki/Beaver",
            "html": f"<html>{page}</html>",
            "tokens": {
                "token": tokens,
                "is_html": [token.startswith("<") for token in tokens],
                "start_byte": list(range(len(tokens))),
                "end_byte": list(range(1, len(tokens) + 1)),
            },
        },
        "question": {"text": question, "tokens": question.split(" ")},
        "long_answer_candidates": {
            "start_token": [3],
            "end_token": [15],
            "start_byte": [0],
            "end_byte": [9],
            "top_level": [True],
        },
        "annotations": {
            "id": [str(i) for i in range(len(spans))],
            "long_answer": [long_answer for _ in spans],
            "short_answers": annotators,
            "yes_no_answer": yes_no or [-1] * len(spans),
        },
    }


UTAH, YEAR = (9, 10), (20, 21)
ROWS = [
    record(1, [[]]),  # no short answer
    record(2, [[UTAH]]),
    record(3, [[], []], yes_no=[-1, 1]),  # a yes, and no span
    record(4, [[UTAH], [(9, 13)], [UTAH], [], [YEAR]]),  # five annotators
    record(
        5, [[(12, 17)]], "<P> x </P> " * 4 + "Salt <A> Lake </A> City is its capital .", "capital of utah"
    ),
    record(6, [[(0, 1)]]),  # an answer of nothing but a tag
    record(7, [[(0, 1)]], ""),  # no tokens, and a span beyond them
    record(8, [[(2, 3)]], "<P> 大运河 1794 公里 </P>", "大运河有多长", title="大运河"),
    record(9, [[UTAH, YEAR]]),  # one answer of two spans
    record(2, [[UTAH]]),  # an id that was there before
    record(11, [[(1, 2)]], "<P> Été \u2028 élan", "quelle saison", title="Saisons"),
    record(12, [[(30, 40)]]),  # beyond the page
]


def jsonl(rows):
    return "\n".join(map(json.dumps, rows)) + "\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "nq.jsonl").write_text(jsonl(ROWS), encoding="utf-8")
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "nq.parquet", row_group_size=4)
    return tmp_path


@pytest.fixture(params=["nq.jsonl", "nq.parquet"])
def source(request, files):
    return files / request.param


def test_the_first_questions_with_a_short_answer(source):
    dataset = load_natural_questions(2, source=source)
    assert dataset.name == "Natural Questions, nq"
    first, second = dataset.questions
    assert (first.query_id, first.question, first.language) == ("2", "where is beaver", "en")
    (document,) = first.documents
    assert (document.title, document.text) == (
        "Beaver",
        "Beaver\nBeaver is a city in Utah, United States.\nIt was settled in 1856.",
    )
    assert first.reference_answers == ("Utah",)
    assert first.passages is None
    assert second.reference_answers == ("Utah", "Utah, United States", "1856")
    assert dataset.report.notes == (
        "4 records examined, 2 used; left out: no short answer (1); only a yes or no (1).",
    )


def test_every_record_and_why_others_are_left_out(source):
    dataset = load_natural_questions(50, source=source)
    answers = {q.query_id: q.reference_answers for q in dataset.questions}
    assert answers == {
        "2": ("Utah",),
        "4": ("Utah", "Utah, United States", "1856"),
        "5": ("Salt Lake City",),  # tags inside the answer are dropped
        "8": ("1794",),
        "9": ("Utah", "1856"),
        "11": ("Été",),
    }
    assert dataset.questions[3].documents[0].text == "大运河 1794 公里"
    assert dataset.report.notes == (
        "12 records examined, 6 used; left out: no short answer (3); only a yes or no (1); "
        "a short answer made of HTML tags only (1); an id that was there before (1).",
        "50 questions asked for, 6 found.",
    )
    assert (dataset.report.n_rows, dataset.report.n_kept) == (12, 6)


def test_jsonl_and_parquet_give_the_same_data_set(files):
    a, b = (load_natural_questions(50, source=files / f"nq.{kind}") for kind in ("jsonl", "parquet"))
    assert a.digest == b.digest


def test_gold_stands_once_in_the_page_and_marks_the_passage_that_holds_the_answer(files, tmp_path):
    filler = " ".join(f"<P> Utah {i} </P>" for i in range(60))
    page = f"{filler} {PAGE} {filler}"
    at = page.split(" ").index("in") + 1
    (tmp_path / "far.jsonl").write_text(jsonl([record(1, [[(at, at + 1)]], page)]), encoding="utf-8")
    question = load_natural_questions(1, source=tmp_path / "far.jsonl").questions[0]
    assert question.gold == ("Beaver Beaver is a city in Utah, United States. It was",)
    found = PassageFinder(RunOptions(k=10, passage_words=20)).find(question)
    assert found.n_gold == 1
    assert ["city in Utah" in p.text for p in found.passages] == [p.is_gold for p in found.passages]


def test_what_was_loaded_can_be_kept(files):
    dataset = load_natural_questions(50, source=files / "nq.jsonl")
    again = read_dataset(dataset_jsonl(dataset), "kept.jsonl")
    assert again.questions == dataset.questions
    assert again.digest == dataset.digest
    assert not again.report.issues  # each gold fragment is found again


def test_a_seed_shuffles_and_repeats_itself(tmp_path):
    (tmp_path / "many.jsonl").write_text(jsonl(record(i, [[UTAH]]) for i in range(40)), encoding="utf-8")

    def ids(seed):
        return [
            q.query_id for q in load_natural_questions(5, source=tmp_path / "many.jsonl", seed=seed).questions
        ]

    assert ids(None) == ["0", "1", "2", "3", "4"]
    assert ids(7) == ids(7) != ids(None)
    assert ids(8) != ids(7)


def test_files_by_folder_pattern_and_gzip(tmp_path):
    folder = tmp_path / "nq"
    folder.mkdir()
    for i in (2, 1):
        (folder / f"part{i}.jsonl.gz").write_bytes(gzip.compress(jsonl([record(i, [[UTAH]])]).encode()))
    (folder / "README.md").write_text("about", encoding="utf-8")
    for source in (folder, folder / "part*", str(folder / "*.gz")):
        assert [q.query_id for q in load_natural_questions(9, source=source).questions] == ["1", "2"]


def test_examining_stops(files, monkeypatch):
    monkeypatch.setattr(natural_questions, "MAX_PER_QUESTION", 1)
    dataset = load_natural_questions(3, source=files / "nq.jsonl")
    assert len(dataset.questions) == 1
    assert dataset.report.notes[0].startswith("3 records examined, 1 used")


def test_tokens_may_be_one_object_each(tmp_path):
    row = record(1, [[UTAH]])
    columns = row["document"]["tokens"]
    row["document"]["tokens"] = [
        {"token": t, "is_html": h} for t, h in zip(columns["token"], columns["is_html"], strict=True)
    ]
    (tmp_path / "a.jsonl").write_text(jsonl([row]), encoding="utf-8")
    assert load_natural_questions(1, source=tmp_path / "a.jsonl").questions[0].reference_answers == ("Utah",)


def broken(**changes):
    return {**record(1, [[UTAH]]), **changes}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"text": "something else"}, "not a record of Natural Questions (1)"),
        (broken(document="text"), "not a record of Natural Questions (1)"),
        (broken(annotations={"id": ["0"]}), "not a record of Natural Questions (1)"),
        (broken(question={"text": "  "}), "question: expected a text that is not empty (1)"),
        (broken(document={**record(1, [])["document"], "tokens": {"token": ["a"], "is_html": []}}),
         "not a record of Natural Questions (1)"),
        (broken(document={**record(1, [])["document"], "tokens": {"token": [1], "is_html": [False]}}),
         "not a record of Natural Questions (1)"),
        (broken(document={**record(1, [])["document"], "tokens": {"token": ["a"] * 30, "is_html": ["no"] * 30}}),
         "not a record of Natural Questions (1)"),
    ],
)  # fmt: skip
def test_a_record_of_another_shape_is_left_out(tmp_path, row, reason):
    (tmp_path / "a.jsonl").write_text(jsonl([row]), encoding="utf-8")
    with pytest.raises(InputError) as error:
        load_natural_questions(1, source=tmp_path / "a.jsonl")
    assert str(error.value).endswith(f"1 record examined, 0 used; left out: {reason}.")


@pytest.mark.parametrize(
    ("spans", "kept"),
    [
        ([(0, 1), (2, 3)], [(0, 1), (2, 3)]),
        ([(2, 3), (0, 3), (2, 3)], [(2, 3), (0, 3)]),
        ([(2, 4), (-1, 1), (1, 1), (2, 1), (1, 2)], [(1, 2)]),
    ],
)
def test_a_short_answer_lies_within_the_page(spans, kept):
    first, last = zip(*spans, strict=True)
    answers = {"short_answers": [{"start_token": first, "end_token": last}]}
    assert natural_questions._short_answers(answers, 3) == kept


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("absent.jsonl", None, "There is no .jsonl or .parquet file at"),
        ("nq.csv", "id,question\n1,x\n", "There is no .jsonl or .parquet file at"),
        ("nq.jsonl", "{broken\n", "cannot be read as Natural Questions: "),
        ("nq.parquet", "not parquet", "cannot be read as Natural Questions: "),
        ("nq.jsonl", "", "cannot be read as Natural Questions: |No record of Natural Questions can be used"),
    ],
)
def test_files_that_cannot_be_read_are_one_sentence(tmp_path, capfd, name, content, expected):
    if content is not None:
        (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=expected) as error:
        load_natural_questions(1, source=tmp_path / name)
    assert "\n" not in str(error.value)
    assert capfd.readouterr().err == ""


def test_files_of_two_kinds_do_not_mix(files):
    with pytest.raises(InputError, match="files of one kind"):
        load_natural_questions(1, source=files)


def test_no_network_is_one_sentence():  # HF_HUB_OFFLINE is set for all tests
    with pytest.raises(BackendError, match=r"cannot be read from the Hugging Face hub .*: check the network"):
        load_natural_questions(1)


def test_unknown_split_and_numbers(files):
    with pytest.raises(BackendError, match="splits train and validation, got 'test'"):
        load_natural_questions(1, split="test")
    with pytest.raises(InputError, match="at least 1, got 0"):
        load_natural_questions(0, source=files / "nq.jsonl")


def page_of(text):
    """Tokens of a page written with blanks; what starts with < is a tag."""
    return plain_page([(token, token.startswith("<")) for token in text.split(" ")])


def test_tags_go_and_marks_join_their_words():
    found = page_of("<H1> Beaver , Utah </H1> <P> It is ( by law ) `` a city '' ; founded 1856 . </P>")
    assert found.text == 'Beaver, Utah\nIt is (by law) "a city"; founded 1856.'


def test_inline_tags_do_not_break_a_line_and_blocks_do():
    assert (
        page_of("one <B> two </B> three <Tr> <Td> four <Td> five <Br> six").text
        == "one two three\nfour five\nsix"
    )


@pytest.mark.parametrize(
    ("text", "first", "last", "expected"),
    [
        ("<P> in Salt <A> Lake </A> City .", 2, 7, "Salt Lake City"),  # a tag inside
        ("<P> in Salt <P> Lake .", 2, 5, "Salt Lake"),  # over a line break
        ("<P> <B> </B> x", 0, 3, ""),  # nothing but tags
    ],
)
def test_piece(text, first, last, expected):
    assert page_of(text).piece(first, last) == expected


def test_spans_are_where_the_tokens_stand():
    found = page_of("<P> Été <I> 大运河 </I> !")
    assert [span and found.text[slice(*span)] for span in found.spans] == [
        None,
        "Été",
        None,
        "大运河",
        None,
        "!",
    ]


def test_empty_tokens_and_an_empty_page():
    found = plain_page([("", False), (" ", False), ("a", False), ("", True)])
    assert (found.text, found.spans) == ("a", (None, None, (0, 1), None))
    assert plain_page([]).text == ""
    assert plain_page([]).fragment(0, 1) == ""


def test_fragment_is_six_tokens_on_either_side_where_that_is_unique():
    words = [f"w{i}" for i in range(40)]
    assert page_of(" ".join(words)).fragment(20, 21) == " ".join(words[14:27])
    assert page_of(" ".join(words)).fragment(1, 3) == " ".join(words[0:9])  # the page begins there


def test_fragment_grows_until_it_stands_only_once():
    same = [f"w{i}" for i in range(15)]
    text = ["start", *same, "middle", *same, "end"]
    found = page_of(" ".join(text))
    assert found.fragment(8, 9) == " ".join(text[:21])  # 12 on either side, and it reaches what is there once
    assert found.text.count(found.fragment(8, 9)) == 1


def test_what_stands_twice_even_in_its_widest_window_is_given_as_it_is():
    text = " ".join(["x"] * 400)
    assert page_of(text).fragment(200, 201) == " ".join(["x"] * 193)
