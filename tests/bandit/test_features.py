"""Contexts as people have them: every kind of column, from every kind of container."""

from typing import Any

import narwhals
import numpy as np
import pandas
import polars
import pyarrow
import pytest

from polyarm import Bandit, Category, Cyclic, Flag, Number
from polyarm.bandit.features import Schema
from polyarm.bandit.tables import codes_of
from polyarm.errors import InvalidArgument
from tests.bandit.shapes import COLUMNS, visitor

SCHEMA = Schema.of(COLUMNS)


def rows(n: int = 40) -> list[dict[str, Any]]:
    rng = np.random.default_rng(3)
    return [visitor(rng) for _ in range(n)]


def features(schema: Schema, contexts: Any) -> Any:
    codes = codes_of(schema, contexts)
    origins = schema.origins_after(np.full(len(schema.names), np.nan), codes)
    return schema.features_many(codes, origins)


@pytest.mark.parametrize(
    "make",
    [
        lambda r: [list(row.values()) for row in r],
        lambda r: np.array([list(row.values()) for row in r], dtype=object),
        lambda r: {name: [row[name] for row in r] for name in r[0]},
        pandas.DataFrame,
        lambda r: pandas.DataFrame(r).convert_dtypes(),
        lambda r: pandas.DataFrame(r).assign(device=lambda f: f.device.astype("category")),
        lambda r: pandas.DataFrame(r).iloc[:, ::-1].assign(other=1),
        polars.DataFrame,
        lambda r: polars.DataFrame(r).with_columns(polars.col("device").cast(polars.Categorical)),
        lambda r: narwhals.from_native(polars.DataFrame(r)),
        pyarrow.Table.from_pylist,
        lambda r: [pandas.Series(row) for row in r],
        lambda r: [tuple(row) for row in polars.DataFrame(r).iter_rows()],
    ],
)
def test_every_container_says_the_same(make: Any) -> None:
    assert np.array_equal(codes_of(SCHEMA, make(rows())), codes_of(SCHEMA, rows()), equal_nan=True)


def test_one_row_and_many_have_the_same_features() -> None:
    codes = codes_of(SCHEMA, rows())
    origins = SCHEMA.origins_after(np.full(len(SCHEMA.names), np.nan), codes)
    many = SCHEMA.features_many(codes, origins)
    assert many.shape == (40, SCHEMA.n_features)
    assert np.allclose(many, [SCHEMA.features(row, origins) for row in codes], rtol=1e-15, atol=1e-15)


def test_codes_give_the_context_back() -> None:
    assert [SCHEMA.context(row) for row in codes_of(SCHEMA, rows())] == rows()


def test_features_of_each_kind() -> None:
    schema = Schema.of({"a": Number(), "b": bool, "c": ["x", "y"], "d": ["x", "y", "z"], "e": Cyclic(4)})
    found = features(schema, [[3.0, True, "y", "y", 1], [5.0, False, "x", "z", 5]])
    assert np.allclose(found, [[0, 1, 1, 0, 1, 0, 1, 0], [2, 0, -1, 0, 0, 1, 1, 0]])


def test_a_missing_optional_value_is_zero_and_says_so() -> None:
    schema = Schema.of({"a": Number(optional=True), "b": Category(["x", "y", "z"], optional=True)})
    found = features(schema, [[None, None], [3.0, "y"], [4.0, float("nan")]])
    assert found.tolist() == [[0, 1, 0, 0, 0, 1], [0, 0, 0, 1, 0, 0], [1, 0, 0, 0, 0, 1]]


def test_zero_and_unit_of_a_number_do_not_matter() -> None:
    celsius = np.array([[20.0], [25.0], [10.0]])
    kelvin, seconds = celsius + 273.15, celsius + 1.7e9
    schema = Schema.of(1)
    assert np.allclose(features(schema, celsius), features(schema, kelvin))
    far = features(schema, seconds)
    assert np.allclose(far / far[1], features(schema, celsius) / 5.0)


def test_no_context_is_a_constant() -> None:
    assert features(Schema.of(None), 3).tolist() == [[1.0]] * 3
    assert Schema.of(None).features(np.empty(0), np.empty(0)).tolist() == [1.0]


def test_a_schema_survives_json() -> None:
    assert Schema.from_json(SCHEMA.to_json()) == SCHEMA
    assert Schema.of(["a", "b"]).names == ("a", "b")
    assert Schema.of(2).names == ("x0", "x1")


GOOD = {"hour": 3.0, "age": 30, "device": "phone", "member": True, "price": 100.0}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "category": (
        {"device": "fridge"},
        r"context\['device'\] must be one of 'phone', 'desktop', 'tablet', got 'fridge'",
    ),
    "flag": ({"member": "yes"}, r"context\['member'\] must be True or False, got 'yes'"),
    "text": ({"price": "12"}, r"context\['price'\] must be a number, got '12'"),
    "truth": ({"price": True}, r"context\['price'\] must be a number, got True"),
    "infinity": ({"price": float("inf")}, r"context\['price'\] must be finite, got inf"),
    "nan": ({"price": float("nan")}, r"context\['price'\] must be given, got nan; `optional=True`"),
    "nothing": ({"price": None}, r"context\['price'\] must be given, got None"),
    "list": ({"device": ["phone"]}, r"context\['device'\] must be one of"),
    "array": ({"price": np.ones(2)}, r"context\['price'\] must be a number"),
    "more": ({"colour": 1}, "context must be the columns hour, age, device, member, price, got 'colour' too"),
}


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD)
def test_bad_values_name_the_column_and_change_nothing(change: dict[str, Any], message: str) -> None:
    bandit = Bandit(["a", "b"], COLUMNS, policy="linear", seed=1)
    before = bandit.to_bytes()
    with pytest.raises(InvalidArgument, match=message):
        bandit.choose(GOOD | change)
    with pytest.raises(InvalidArgument, match=message.replace("context", r"contexts\[1\]", 1)):
        bandit.choose_many([GOOD, GOOD | change])
    assert bandit.to_bytes() == before


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({k: v for k, v in GOOD.items() if k != "price"}, r"context\['price'\] must be given, got columns"),
        ([1.0], "context must be 5 values: hour, age, device, member, price, got"),
        (None, "context must be given: hour, age"),
        (3.0, "context must be 5 values"),
    ],
)
def test_missing_columns_are_named(context: Any, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        Bandit(["a", "b"], COLUMNS, policy="linear").choose(context)


def test_a_bad_cell_of_a_table_is_named() -> None:
    table = pandas.DataFrame([GOOD, GOOD | {"device": "fridge"}])
    with pytest.raises(InvalidArgument, match=r"contexts\['device'\]\[1\] must be one of"):
        codes_of(SCHEMA, table)
    with pytest.raises(InvalidArgument, match=r"contexts\['price'\] must be given, got columns"):
        codes_of(SCHEMA, table.drop(columns="price"))
    holed = table.assign(device="phone", price=[np.nan, 1.0])
    with pytest.raises(InvalidArgument, match=r"contexts\['price'\]\[0\] must be given, got nan"):
        codes_of(SCHEMA, holed)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (0, "context must be an integer of at least 1"),
        (2.5, "context must be None, a number of columns"),
        (True, "context must be None, a number of columns"),
        ({"a": str}, r"context\['a'\] must be float, bool, a list of levels"),
        ({"a": ["x"]}, "levels must be two or more different"),
        ({"a": ["x", "x"]}, "levels must be two or more different"),
        (["a", "a"], "context must be different names"),
        ({"": float}, "context must be different names"),
    ],
)
def test_bad_schemas_are_refused(given: Any, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        Bandit(["a", "b"], given)


def test_a_period_must_be_positive() -> None:
    with pytest.raises(InvalidArgument, match="period must be a finite number above 0"):
        Cyclic(0)
    assert Flag().code(np.bool_(True)) == 1.0
