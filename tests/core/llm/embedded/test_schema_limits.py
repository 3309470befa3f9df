import pytest

from core.llm.embedded.schema_limits import fit_to_size, unsupported_part

TEXT = {"type": "string"}
SHORT = {"type": "string", "maxLength": 10}


def record(**properties):
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    "schema",
    [
        TEXT,
        record(a=TEXT, b={"type": ["string", "null"]}),
        {"type": "object", "additionalProperties": TEXT},
        {"type": "array", "items": record(a=TEXT)},
        {"type": "array", "prefixItems": [TEXT]},
        {"enum": [{"a": {}}]},
        {"const": {}},
        {"anyOf": [TEXT, {"type": "number"}]},
        {"allOf": [TEXT]},
        {"$defs": {"x": TEXT}, "$ref": "#/$defs/x"},
        record(type={"type": "number"}, items=TEXT, 是=TEXT),
    ],
)
def test_nothing_is_in_the_way_of_what_can_be_compiled(schema):
    assert unsupported_part(schema) is None


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "object"}, "leaves open what is inside"),
        ({"type": ["array", "null"]}, "leaves open what is inside"),
        ({"type": "object", "additionalProperties": True}, "leaves open what is inside"),
        ({"description": "anything"}, "leaves open what is inside"),
        (record(a={"type": "array", "items": {}}), "leaves open what is inside"),
        ({"$defs": {"x": {"type": "object"}}, "type": "string"}, "leaves open what is inside"),
        ({"anyOf": [TEXT, {"type": "array"}]}, "leaves open what is inside"),
        ({"allOf": [record(a=TEXT), record(b=TEXT)]}, "allOf cannot be combined"),
        (record(**{'a"b': TEXT}), "must escape"),
        (record(**{"a\\b": TEXT}), "must escape"),
    ],
)
def test_what_is_in_the_way_is_named_wherever_it_is(schema, expected):
    assert expected in unsupported_part(schema)
    assert expected in unsupported_part(record(outer={"type": "array", "items": schema}))


@pytest.mark.parametrize(
    ("schema", "places"),
    [
        (TEXT, 1),
        (SHORT, 10),
        ({"type": "number"}, 0),
        ({"type": "string", "enum": ["a"]}, 0),
        ({"type": "string", "minLength": 3}, 3),
        (record(a=SHORT, b=TEXT, c={"type": "boolean"}), 11),
        ({"type": "array", "items": SHORT}, 10),
        ({"type": "array", "items": SHORT, "maxItems": 5}, 50),
        ({"type": "array", "items": record(a=SHORT, b=SHORT), "minItems": 3}, 60),
        ({"anyOf": [SHORT, TEXT]}, 11),
        ({"$defs": {"x": SHORT}, "type": "array", "items": {"$ref": "#/$defs/x"}, "maxItems": 2}, 20),
        ({"type": "object", "additionalProperties": SHORT}, 10),
    ],
)
def test_the_size_counts_every_place_for_text(schema, places):
    assert fit_to_size(schema, places) == schema
    assert fit_to_size(schema, places - 1) != schema


def test_lengths_give_way_first_then_counts():
    schema = record(
        tags={
            "type": "array",
            "items": {"type": "string", "minLength": 2, "maxLength": 9},
            "minItems": 2,
            "maxItems": 4,
        },
        maxLength={"type": "number"},
    )
    tags = {"type": "array", "items": {"type": "string", "minLength": 1}}
    assert fit_to_size(schema, 36) == schema
    assert fit_to_size(schema, 35) == record(
        tags=tags | {"minItems": 2, "maxItems": 4}, maxLength={"type": "number"}
    )
    assert fit_to_size(schema, 3) == record(tags=tags | {"minItems": 1}, maxLength={"type": "number"})
    assert fit_to_size(schema, 0) is None


def test_a_schema_that_refers_to_itself_has_a_size():
    tree = {
        "$defs": {"n": record(t=TEXT, c={"type": "array", "items": {"$ref": "#/$defs/n"}})},
        "$ref": "#/$defs/n",
    }
    assert fit_to_size(tree, 3) == tree
    assert fit_to_size(tree, 2) is None
