"""Tables that PyIceberg wrote, read by floe and compared with PyIceberg's own reading."""

import datetime
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest
from conftest import Lab, numbers, same_rows
from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import (
    BucketTransform, DayTransform, HourTransform, IdentityTransform, MonthTransform, Transform, TruncateTransform, YearTransform,
)  # fmt: skip
from pyiceberg.types import (
    BinaryType, BooleanType, DateType, DecimalType, DoubleType, FixedType, FloatType, IntegerType, ListType, LongType, MapType,
    NestedField, StringType, StructType, TimestampType, TimestamptzType, TimeType, UUIDType,
)  # fmt: skip

UTC = datetime.timezone.utc


def create(catalog: Catalog, name: str, rows: pa.Table, **how) -> Table:
    """A table with these rows, its namespace made on the way."""
    catalog.create_namespace_if_not_exists(name.rsplit(".", 1)[0])
    table = catalog.create_table(name, schema=how.pop("schema", rows.schema), **how)
    table.append(rows)
    return table


def test_values_of_every_type_are_read_as_they_were_written(sqlite: Catalog, lab: Lab):
    struct = StructType(NestedField(31, "x", IntegerType()), NestedField(32, "s", StringType()))
    types = [
        ("id", LongType()), ("bool", BooleanType()), ("int", IntegerType()), ("long", LongType()), ("float", FloatType()),
        ("double", DoubleType()), ("small", DecimalType(9, 2)), ("large", DecimalType(38, 10)), ("date", DateType()),
        ("time", TimeType()), ("timestamp", TimestampType()), ("timestamptz", TimestamptzType()), ("string", StringType()),
        ("uuid", UUIDType()), ("fixed", FixedType(4)), ("binary", BinaryType()), ("list", ListType(41, LongType(), element_required=False)),
        ("map", MapType(42, StringType(), 43, DoubleType(), value_required=False)), ("struct", struct),
    ]  # fmt: skip
    schema = Schema(*(NestedField(i, name, kind, required=False) for i, (name, kind) in enumerate(types, start=1)))
    values = [
        (1, True, 2**31 - 1, 2**63 - 1, 1.5, 1e308, Decimal("9999999.99"), Decimal("9" * 28 + "." + "9" * 10),
         datetime.date(2026, 3, 1), datetime.time(23, 59, 59, 999999), datetime.datetime(2026, 3, 1, 12, 0, 0, 123456),
         datetime.datetime(2026, 3, 1, 12, 0, 0, 123456, UTC), "größe 🧊", uuid.UUID(int=1).bytes, b"\x00\x01\xfe\xff", b"\x00",
         [1, None, 3], [("a", 1.0), ("b", None)], {"x": 1, "s": "in"}),
        (2, False, -(2**31), -(2**63), float("-inf"), float("nan"), Decimal("-0.01"), Decimal("-0.0000000001"),
         datetime.date(1901, 1, 1), datetime.time(0), datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
         datetime.datetime(1969, 12, 31, tzinfo=UTC), "", uuid.UUID(int=2**128 - 1).bytes, b"abcd", b"", [], [],
         {"x": None, "s": None}),
        (3, *[None] * (len(types) - 1)),
    ]  # fmt: skip
    sqlite.create_namespace("t")
    table = sqlite.create_table("t.every_type", schema=schema)
    # Creating a table gives its fields new ids.
    arrow = table.schema().as_arrow()
    columns = [pa.array(column, field.type) for column, field in zip(zip(*values), arrow)]
    table.append(pa.Table.from_arrays(columns, schema=arrow))
    same_rows(lab.scan("t.every_type"), table.scan().to_arrow())
    assert lab.count("t.every_type") == 3
    assert lab.sql('SELECT "long", "large" FROM t.every_type WHERE id < 3 ORDER BY id') == [
        {"long": 2**63 - 1, "large": Decimal("9" * 28 + "." + "9" * 10)},
        {"long": -(2**63), "large": Decimal("-0.0000000001")},
    ]


@pytest.mark.parametrize(
    ("column", "transform", "where"),
    [
        ("word", IdentityTransform(), "word = 'w3'"),
        ("id", BucketTransform(4), "id = 17"),
        ("word", TruncateTransform(1), "word = 'w3'"),
        ("at", YearTransform(), "at >= '2025-06-01T00:00:00'"),
        ("at", MonthTransform(), "at < '2024-09-01T00:00:00'"),
        ("at", DayTransform(), "at >= '2025-06-01T00:00:00'"),
        ("at", HourTransform(), "at < '2024-02-01T00:00:00'"),
        ("day", MonthTransform(), "day = '2024-03-01'"),
    ],
    ids=lambda value: str(value) if isinstance(value, Transform) else None,
)
def test_every_partition_transform_is_read_and_filtered(
    sqlite: Catalog, lab: Lab, column: str, transform: Transform, where: str
):
    start = datetime.datetime(2024, 1, 1)
    times = [None, *(start + datetime.timedelta(days=20 * i, hours=i) for i in range(1, 40))]
    rows = pa.table(
        {
            "id": pa.array(range(40), pa.int64()),
            "word": [None, *(f"w{i % 5}" for i in range(1, 40))],
            "at": pa.array(times, pa.timestamp("us")),
            "day": pa.array([time and time.date().replace(day=1) for time in times], pa.date32()),
        }
    )
    schema = Schema(
        NestedField(1, "id", LongType()), NestedField(2, "word", StringType()), NestedField(3, "at", TimestampType()),
        NestedField(4, "day", DateType()),
    )  # fmt: skip
    source = schema.find_field(column).field_id
    spec = PartitionSpec(PartitionField(source, 1000, transform, f"{column}_part"))
    table = create(sqlite, "t.partitioned", rows, schema=schema, partition_spec=spec)
    assert len(table.inspect.files()) > 1
    same_rows(lab.scan("t.partitioned"), table.scan().to_arrow())
    expected = table.scan(row_filter=where).to_arrow()
    assert 0 < expected.num_rows < 40
    same_rows(lab.scan("t.partitioned", "--where", where), expected)


def test_a_changed_schema_is_read_now_and_as_it_was(sqlite: Catalog, lab: Lab):
    before = pa.table(
        {"id": pa.array([1, 2], pa.int32()), "f": pa.array([0.5, None], pa.float32()), "gone": ["x", "y"], "old": ["a", "b"]}
    )
    table = create(sqlite, "t.evolved", before)
    first = table.current_snapshot().snapshot_id
    with table.update_schema() as change:
        change.add_column("added", DecimalType(12, 3))
        change.rename_column("old", "renamed")
        change.delete_column("gone")
        change.update_column("id", LongType())
        change.update_column("f", DoubleType())
    with table.update_schema() as change:
        change.move_first("renamed")
    # Before anything is written with the new schema.
    same_rows(lab.scan("t.evolved"), table.scan().to_arrow())
    after = pa.table(
        {"renamed": ["c"], "id": pa.array([2**40]), "f": [0.1], "added": pa.array([Decimal("1.125")], pa.decimal128(12, 3))}
    )
    table.append(after)
    assert lab.scan("t.evolved").column_names == ["renamed", "id", "f", "added"]
    same_rows(lab.scan("t.evolved"), table.scan().to_arrow())
    same_rows(lab.scan("t.evolved", "--snapshot", str(first)), table.scan(snapshot_id=first).to_arrow())
    # A name that was freed and is used again is another column.
    with table.update_schema() as change:
        change.add_column("gone", LongType())
    same_rows(lab.scan("t.evolved"), table.scan().to_arrow())
    assert lab.sql("SELECT count(gone) AS n FROM t.evolved") == [{"n": 0}]
    # Files written before a promotion hold bounds of the narrower type.
    assert lab.count("t.evolved", "--where", "id = 2") == 1


def test_a_changed_partition_spec_is_read_across_both(sqlite: Catalog, lab: Lab):
    table = create(sqlite, "t.respecced", numbers(0, 10))
    with table.update_spec() as change:
        change.add_field("id", BucketTransform(3), "id_bucket")
    table.append(numbers(10, 20))
    same_rows(lab.scan("t.respecced"), table.scan().to_arrow())
    same_rows(lab.scan("t.respecced", "--where", "id IN (4, 14)"), table.scan(row_filter="id in (4, 14)").to_arrow())


def test_deleted_and_overwritten_rows_are_gone(sqlite: Catalog, lab: Lab):
    table = create(sqlite, "t.rewritten", numbers(0, 100))
    table.delete("id < 10")
    table.overwrite(numbers(1000, 1010), overwrite_filter="id >= 90")
    table.upsert(pa.table({"id": pa.array([50]), "name": ["changed"]}), join_cols=["id"])
    rows = table.scan().to_arrow()
    assert rows.num_rows == 90
    same_rows(lab.scan("t.rewritten"), rows)
    assert lab.count("t.rewritten") == 90


@pytest.mark.parametrize("name", ["plain", "two words", "größe", "a#b", "a%20b", "50%", "who?", "semi;colon", "a+b&c=d", "it's"])
def test_a_table_of_any_name_is_listed_and_read(sqlite: Catalog, lab: Lab, name: str):
    # PyIceberg takes `#` and `?` for the end of a path, and would write all files of such a table over each other.
    location = {"location": f"file://{lab.dir}/warehouse/elsewhere"} if set(name) & set("#?") else {}
    table = create(sqlite, f"odd.{name}", numbers(0, 10), **location)
    assert lab.tables() == [f"odd.{name}"]
    same_rows(lab.scan(f"odd.{name}"), table.scan().to_arrow())
    assert lab.sql(f'SELECT count(*) AS n FROM odd."{name}"') == [{"n": 10}]


def test_columns_of_any_name_are_read(sqlite: Catalog, lab: Lab):
    names = ["two words", "größe", "a#b", "50%", 'quo"te', "Capital", "a.b", "it's", "-", "1st"]
    rows = pa.table({name: pa.array([i, i + 1]) for i, name in enumerate(names)})
    table = create(sqlite, "odd.columns", rows)
    same_rows(lab.scan("odd.columns"), table.scan().to_arrow())
    assert lab.sql('SELECT sum("größe") AS g, sum("Capital") AS c, sum("a.b") AS d FROM odd.columns') == [
        {"g": 3, "c": 11, "d": 13}
    ]


def test_nested_namespaces_are_listed_and_read(sqlite: Catalog, lab: Lab):
    for namespace in ["a", "a.b", "a.b.c"]:
        sqlite.create_namespace(namespace)
    deep = create(sqlite, "a.b.c.deep", numbers(0, 5))
    create(sqlite, "a.shallow", numbers(0, 3))
    assert lab.tables() == ["a.b.c.deep", "a.shallow"]
    assert lab.tables("a.b.c") == ["a.b.c.deep"]
    same_rows(lab.scan("a.b.c.deep"), deep.scan().to_arrow())


def test_a_table_is_read_by_the_path_or_url_of_its_metadata(sqlite: Catalog, lab: Lab):
    table = create(sqlite, "t.by_path", numbers(0, 7))
    older = table.metadata_location
    table.append(numbers(7, 9))
    lab.flags = []
    (lab.dir / "floe.toml").unlink()
    for location, rows in [(table.metadata_location, 9), (table.metadata_location.removeprefix("file://"), 9), (older, 7)]:
        assert lab.count(location) == rows
    same_rows(lab.scan(table.metadata_location), table.scan().to_arrow())


def test_an_append_between_two_scans_is_seen_by_the_second(sqlite: Catalog, lab: Lab):
    table = create(sqlite, "t.fresh", numbers(0, 10))
    for end in [20, 30]:
        assert lab.count("t.fresh") == end - 10
        table.append(numbers(end - 10, end))
        same_rows(lab.scan("t.fresh"), table.scan().to_arrow())
    assert lab.sql("SELECT max(id) AS last FROM t.fresh") == [{"last": 29}]


def test_branches_and_tags_are_read_by_their_names(sqlite: Catalog, lab: Lab):
    table = create(sqlite, "t.refs", numbers(0, 10))
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "v1").commit()
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "work").commit()
    table.append(numbers(10, 15), branch="work")
    table.append(numbers(20, 40))
    assert {ref["name"]: ref["type"] for ref in lab.json("table", "refs", "t.refs")["refs"]} == {
        "main": "branch", "v1": "tag", "work": "branch",
    }  # fmt: skip
    for name in ["v1", "work", "main"]:
        same_rows(lab.scan("t.refs", "--ref", name), table.scan().use_ref(name).to_arrow())
