"""The demo lake, which floe wrote, read by PyIceberg and DuckDB: the same tables, the same rows."""

import importlib.util
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from conftest import Lab, same_rows
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyiceberg.types import (
    BooleanType, DateType, DecimalType, DoubleType, FloatType, IntegerType, LongType, StringType, TimestampType, TimestamptzType,
)  # fmt: skip

TABLES = ["crm.customers", "crm.events", "crm.orders", "crm.payments", "crm.profile", "crm.tickets", "football.events"]
ROWS = 20_000


class Lake(Lab):
    """The demo lake and its catalog, as PyIceberg opens it."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.report = self.json("demo", "--dir", "lake", "--rows", str(ROWS), "--mbit", "1000", "--rtt-ms", "1")
        self.flags = ["--config", str(folder / "lake/floe.toml")]
        self.catalog: Catalog = SqlCatalog("demo", uri=f"sqlite:///{folder}/lake/catalog.db")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    """DuckDB with its extensions from PyPI: nothing is fetched when a query runs."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": False})
    for name in ["avro", "httpfs", "iceberg"]:
        folder = Path(importlib.util.find_spec(f"duckdb_extension_{name}").origin).parent
        (extension,) = folder.glob(f"extensions/*/{name}.duckdb_extension")
        connection.load_extension(str(extension))
    return connection


def test_every_engine_lists_the_same_tables(lake: Lake):
    names = [".".join(table) for namespace in lake.catalog.list_namespaces() for table in lake.catalog.list_tables(namespace)]
    assert sorted(names) == lake.tables() == TABLES


@pytest.mark.parametrize("name", TABLES)
def test_every_engine_counts_and_sums_the_same(lake: Lake, duck: duckdb.DuckDBPyConnection, name: str):
    table = lake.catalog.load_table(name)
    query = f"SELECT {', '.join(summaries(table))} FROM"
    (by_floe,) = lake.sql(f"{query} {name}")
    assert by_floe["rows"] > 0
    duck.register("rows_of_pyiceberg", table.scan().to_arrow())
    for reader, source in [("PyIceberg", "rows_of_pyiceberg"), ("DuckDB", iceberg_scan(table))]:
        found = duck.execute(f"{query} {source}").to_arrow_table().to_pylist()[0]
        wrong = [key for key in found if not agrees(by_floe[key], found[key])]
        assert not wrong, f"{reader}: {[(key, found[key], by_floe[key]) for key in wrong]}"


def test_the_demo_reports_the_rows_that_other_engines_count(lake: Lake, duck: duckdb.DuckDBPyConnection):
    table = lake.catalog.load_table("football.events")
    # The demo reports the lake as it was before its second writer appended one match.
    before_the_last = table.current_snapshot().parent_snapshot_id
    assert table.scan(snapshot_id=before_the_last).count() == lake.report["rows"] == ROWS
    (count,) = duck.execute(f"SELECT count(*) FROM {iceberg_scan(table)}").fetchone()
    assert count == table.scan().count() == lake.count("football.events") > ROWS


def test_pyiceberg_prunes_partitions_to_the_rows_that_floe_finds(lake: Lake):
    scan = lake.catalog.load_table("football.events").scan(row_filter="match_id = 123100")
    assert len(list(scan.plan_files())) == 1
    rows = scan.to_arrow()
    assert rows.num_rows > 0
    same_rows(lake.scan("football.events", "--where", "match_id = 123100"), rows)


@pytest.mark.parametrize("name", TABLES)
def test_bounds_in_manifests_hold_what_is_in_the_files(lake: Lake, name: str):
    files = lake.catalog.load_table(name).inspect.files().to_pylist()
    bounded = 0
    for file in files[:8]:
        rows = pq.read_table(file["file_path"].removeprefix("file://"))
        assert rows.num_rows == file["record_count"]
        for column, metrics in file["readable_metrics"].items():
            bounded += check_metrics(f"{name}.{column} in {file['file_path']}", metrics, rows[column])
    assert bounded > 0


def check_metrics(where: str, metrics: dict, values: pa.ChunkedArray) -> int:
    """Compares a column's metrics with its values; gives the number of bounds that there were."""
    if metrics["value_count"] is not None:
        assert metrics["value_count"] == len(values), where
    if metrics["null_value_count"] is not None:
        assert metrics["null_value_count"] == values.null_count, where
    lower, upper = metrics["lower_bound"], metrics["upper_bound"]
    found = {} if values.null_count == len(values) else pc.min_max(values).as_py()
    if lower is not None and upper is not None:
        assert lower <= upper, where
    if lower is not None and found:
        assert lower <= found["min"], where
    if upper is not None and found:
        assert upper >= found["max"], where
    return sum(bound is not None for bound in (lower, upper))


def iceberg_scan(table: Table) -> str:
    location = table.metadata_location.removeprefix("file://").replace("'", "''")
    return f"iceberg_scan('{location}')"


def summaries(table: Table) -> list[str]:
    """Expressions in the SQL that floe and DuckDB share; every column is counted, and summed in a way of its type."""
    found = ["count(*) AS rows"]
    for i, field in enumerate(table.schema().fields):
        name = '"' + field.name.replace('"', '""') + '"'
        found.append(f"count({name}) AS count_{i}")
        match field.field_type:
            case IntegerType() | LongType() | DecimalType():
                # DataFusion sums 64-bit integers in 64 bits, DuckDB in 128.
                found.append(f"sum(CAST({name} AS DECIMAL(38, 6))) AS sum_{i}")
            case FloatType() | DoubleType():
                found.append(f"sum({name}) AS sum_{i}")
            case StringType():
                found.append(f"sum(length({name})) AS length_{i}")
            case BooleanType():
                found.append(f"sum(CASE WHEN {name} THEN 1 ELSE 0 END) AS true_{i}")
            case DateType() | TimestampType() | TimestamptzType():
                found.append(f"min(date_part('epoch', {name})) AS first_{i}")
                found.append(f"max(date_part('epoch', {name})) AS last_{i}")
    return found


def agrees(by_floe, found) -> bool:
    """Exact, but for floating point, whose sums depend on the order."""
    if by_floe is None or found is None:
        return by_floe is found
    if isinstance(found, float):
        return float(by_floe) == pytest.approx(found, rel=1e-9)
    return Decimal(by_floe) == Decimal(found)
