"""Metadata tables of tables that PyIceberg wrote, beside PyIceberg's own `table.inspect`, in the columns that both have."""

import datetime
import subprocess
from decimal import Decimal

import pyarrow as pa
import pytest
from conftest import PATIENCE_SECONDS, Lab, plain, variable
from pyiceberg.catalog import Catalog
from pyiceberg.expressions import EqualTo
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, DayTransform, HourTransform, IdentityTransform, MonthTransform, TruncateTransform, YearTransform

UTC = datetime.timezone.utc


def shown(lab: Lab, name: str) -> pa.Table:
    """A metadata table, by way of an Arrow stream: JSON would blur types."""
    run = subprocess.run(
        [variable("FLOE_BIN"), *lab.flags, "sql", f'SELECT * FROM t."{name}"', "--format", "arrow"],
        cwd=lab.dir, env=lab.environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr.decode()
    return pa.ipc.open_stream(run.stdout).read_all()


def same(value):
    """A value without what is a matter of form: maps in no order, times of metadata in UTC."""
    match value:
        case dict():
            return {key: same(item) for key, item in value.items()}
        case [tuple(), *_]:
            return sorted((key, same(item)) for key, item in value)
        case list():
            return [same(item) for item in value]
        case datetime.datetime():
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
        case _:
            return plain(value)


def common(found, expected):
    """`found` with only those keys that `expected` has too, however deep, and how many there are; neither loses a row."""
    if isinstance(found, dict) and isinstance(expected, dict):
        return {key: common(found[key], expected[key]) for key in expected if key in found}
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        return [common(one, other) for one, other in zip(found, expected)]
    return found


def agree(found: pa.Table, expected: pa.Table, *key: str) -> None:
    """The same rows in the columns that both have, compared row by row in the order of `key`."""

    def place(row):
        for part in key:
            row = row[part] if part in row else row
        return repr(row)

    found, expected = (sorted(map(same, table.to_pylist()), key=place) for table in (found, expected))
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        assert common(one, other) == common(other, one)
        assert len(common(one, other)) >= min(len(other), 4), "hardly a column in common"


def rows(start: int, end: int) -> pa.Table:
    ids = range(start, end)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "word": pa.array([f"w{i % 3}" if i % 7 else None for i in ids], pa.string()),
            "size": pa.array([float("nan") if i % 5 == 0 else i / 2 for i in ids], pa.float64()),
            "price": pa.array([Decimal(i) / 100 for i in ids], pa.decimal128(9, 2)),
            "day": pa.array([datetime.date(2024, 1, 1) + datetime.timedelta(days=i) for i in ids], pa.date32()),
            "at": pa.array([datetime.datetime(1970, 1, 1) + datetime.timedelta(days=400 * i, hours=i) for i in ids], pa.timestamp("us")),
        }
    )


def create(catalog: Catalog, name: str, spec: PartitionSpec | None = None) -> Table:
    catalog.create_namespace_if_not_exists("t")
    table = catalog.create_table(f"t.{name}", schema=rows(0, 1).schema)
    if spec:
        with table.update_spec() as update:
            for field in spec.fields:
                update.add_field(table.schema().find_column_name(field.source_id), field.transform, field.name)
    return table


def agree_in_all(lab: Lab, table: Table, name: str) -> None:
    inspect = table.inspect
    agree(shown(lab, f"{name}$snapshots"), inspect.snapshots(), "snapshot_id")
    agree(shown(lab, f"{name}$refs"), inspect.refs(), "name")
    agree(shown(lab, f"{name}$history"), inspect.history(), "made_current_at")
    agree(shown(lab, f"{name}$manifests"), inspect.manifests(), "path")
    agree(shown(lab, f"{name}$files"), inspect.files(), "file_path")
    agree(shown(lab, f"{name}$data_files"), inspect.data_files(), "file_path")
    agree(shown(lab, f"{name}$delete_files"), inspect.delete_files(), "file_path")
    agree(shown(lab, f"{name}$entries"), inspect.entries(), "data_file", "file_path")
    agree(shown(lab, f"{name}$partitions"), inspect.partitions(), "partition")


def test_an_unpartitioned_table_is_shown_as_pyiceberg_shows_it(sqlite: Catalog, lab: Lab):
    table = create(sqlite, "plain")
    table.append(rows(0, 20))
    table.append(rows(20, 50))
    # Copy on write: entries of deleted files, and a file in their place.
    table.delete(EqualTo("id", 7))
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "v1").commit()
    table.append(rows(50, 55))
    agree_in_all(lab, table, "plain")
    statuses = shown(lab, "plain$entries")["status"].to_pylist()
    assert {0, 1} & set(statuses)
    assert sum(shown(lab, "plain$tag_v1$files")["record_count"].to_pylist()) == 49


@pytest.mark.parametrize(
    "transforms",
    [
        [("word", IdentityTransform())],
        [("id", BucketTransform(3)), ("word", TruncateTransform(1))],
        [("day", MonthTransform()), ("at", YearTransform())],
        [("at", HourTransform())],
        [("day", DayTransform())],
        [("id", TruncateTransform(10)), ("price", IdentityTransform())],
    ],
    ids=lambda transforms: "+".join(f"{column}-{transform}" for column, transform in transforms),
)
def test_partitions_are_shown_as_pyiceberg_shows_them(sqlite: Catalog, lab: Lab, transforms):
    names = rows(0, 1).column_names
    fields = [
        PartitionField(names.index(column) + 1, 1000 + i, transform, f"p{i}_{column}")
        for i, (column, transform) in enumerate(transforms)
    ]
    table = create(sqlite, "parted", PartitionSpec(*fields))
    table.append(rows(0, 12))
    table.append(rows(10, 25))
    agree_in_all(lab, table, "parted")


def test_a_changed_partition_spec_is_shown_as_pyiceberg_shows_it(sqlite: Catalog, lab: Lab):
    table = create(sqlite, "respec", PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "word")))
    table.append(rows(0, 12))
    with table.update_spec() as update:
        update.add_field("id", BucketTransform(2), "id_bucket")
    table.append(rows(12, 30))
    agree_in_all(lab, table, "respec")
    first = table.snapshots()[0].snapshot_id
    agree(shown(lab, f"respec$snapshot_{first}$files"), table.inspect.files(snapshot_id=first), "file_path")
    agree(shown(lab, f"respec$snapshot_{first}$entries"), table.inspect.entries(snapshot_id=first), "data_file", "file_path")


def test_a_table_without_a_snapshot_has_no_rows(sqlite: Catalog, lab: Lab):
    table = create(sqlite, "fresh", PartitionSpec(PartitionField(1, 1000, BucketTransform(2), "b")))
    for name in ["snapshots", "history", "manifests", "files", "entries", "partitions"]:
        assert shown(lab, f"fresh${name}").num_rows == 0
    assert table.inspect.manifests().num_rows == 0
