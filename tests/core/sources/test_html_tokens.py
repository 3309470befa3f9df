import pytest

from core.sources.html_tokens import plain_page


def page(text):
    """Tokens of a page written with blanks; what starts with < is a tag."""
    return plain_page([(token, token.startswith("<")) for token in text.split(" ")])


def test_tags_go_and_marks_join_their_words():
    found = page("<H1> Beaver , Utah </H1> <P> It is ( by law ) `` a city '' ; founded 1856 . </P>")
    assert found.text == 'Beaver, Utah\nIt is (by law) "a city"; founded 1856.'


def test_inline_tags_do_not_break_a_line_and_blocks_do():
    assert (
        page("one <B> two </B> three <Tr> <Td> four <Td> five <Br> six").text
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
    assert page(text).piece(first, last) == expected


def test_spans_are_where_the_tokens_stand():
    found = page("<P> Été <I> 大运河 </I> !")
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
    assert page(" ".join(words)).fragment(20, 21) == " ".join(words[14:27])
    assert page(" ".join(words)).fragment(1, 3) == " ".join(words[0:9])  # the page begins there


def test_fragment_grows_until_it_stands_only_once():
    same = [f"w{i}" for i in range(15)]
    text = ["start", *same, "middle", *same, "end"]
    found = page(" ".join(text))
    assert found.fragment(8, 9) == " ".join(text[:21])  # 12 on either side, and it reaches what is there once
    assert found.text.count(found.fragment(8, 9)) == 1


def test_what_stands_twice_even_in_its_widest_window_is_given_as_it_is():
    text = " ".join(["x"] * 400)
    assert page(text).fragment(200, 201) == " ".join(["x"] * 193)
