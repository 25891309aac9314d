"""What every test starts from: the binary in a working directory of its own, the servers, and rows in a form to compare.

`interop/run` sets FLOE_BIN, FLOE_TEST_POSTGRES and FLOE_TEST_REST; a test that finds one of them missing fails.
"""

import datetime
import json
import math
import os
import subprocess
import uuid
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog

# Longer than any run of the binary here on a busy machine.
PATIENCE_SECONDS = 300


def variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        pytest.fail(f"{name} is not set: start the suite with interop/run")
    return value


class Lab:
    """A working directory with a home, a cache and a `floe.toml` of its own, and the binary run in it."""

    def __init__(self, folder: Path):
        self.dir = folder
        self.home = folder / "home"
        self.home.mkdir()
        self.flags: list[str] = []

    def configure(self, catalog: str, properties: dict[str, str], **cache: str | int) -> None:
        """Writes `floe.toml`, which every run is told of from then on."""
        lines = [f"[catalog.{catalog}]", *(f"{json.dumps(key)} = {json.dumps(value)}" for key, value in properties.items())]
        lines += ["[cache]", *(f"{key.replace('_', '-')} = {json.dumps(value)}" for key, value in cache.items())]
        path = self.dir / "floe.toml"
        path.write_text("\n".join(lines) + "\n")
        self.flags = ["--config", str(path)]

    def environment(self, more: dict[str, str] | None = None) -> dict[str, str]:
        """Nothing of this process's own but what finds programs."""
        return {"HOME": str(self.home), "PATH": os.environ["PATH"], **(more or {})}

    def run(self, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Runs the binary to its end, however that is."""
        return subprocess.run(
            [variable("FLOE_BIN"), *self.flags, *arguments],
            cwd=self.dir, env=self.environment(env), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=PATIENCE_SECONDS,
        )  # fmt: skip

    def done(self, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Runs the binary, which has to succeed."""
        run = self.run(*arguments, env=env)
        assert run.returncode == 0, f"floe {' '.join(arguments)}\n{run.stdout[-2000:]}{run.stderr}"
        return run

    def json(self, *arguments: str, env: dict[str, str] | None = None):
        """The one JSON document of a run; fractions lose nothing."""
        return json.loads(self.done("--json", *arguments, env=env).stdout, parse_float=Decimal)

    def sql(self, query: str) -> list[dict]:
        return self.json("sql", query)

    def count(self, table: str, *arguments: str) -> int:
        return self.json("scan", table, "--count", *arguments)["rows"]

    def scan(self, table: str, *arguments: str) -> pa.Table:
        """The rows of a table, by way of a Parquet file."""
        path = self.dir / f"{uuid.uuid4()}.parquet"
        written = self.json("scan", table, "--output", str(path), *arguments)
        rows = pq.read_table(path)
        assert written["rows"] == rows.num_rows
        return rows

    def tables(self, *arguments: str, env: dict[str, str] | None = None) -> list[str]:
        """The identifiers of all tables, sorted."""
        return sorted(table["identifier"] for table in self.json("table", "list", *arguments, env=env)["tables"])


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


@pytest.fixture
def sqlite(lab: Lab) -> Catalog:
    """PyIceberg's catalog `interop` in a SQLite file, which `lab` reads too."""
    properties = {"type": "sql", "uri": f"sqlite:///{lab.dir}/catalog.db", "warehouse": f"file://{lab.dir}/warehouse"}
    lab.configure("interop", properties)
    return SqlCatalog("interop", **properties)


def numbers(start: int, end: int) -> pa.Table:
    """A small table: some integers and their names."""
    ids = range(start, end)
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{i}" for i in ids]})


def same_rows(found: pa.Table, expected: pa.Table) -> None:
    """The same columns in the same order and the same rows in any, types up to Arrow's variants of one."""
    assert found.column_names == expected.column_names
    assert [plain_type(field.type) for field in found.schema] == [plain_type(field.type) for field in expected.schema]
    assert plain_rows(found) == plain_rows(expected)


def plain_rows(table: pa.Table) -> list[str]:
    return sorted(repr([plain(value) for value in row.values()]) for row in table.to_pylist())


def plain_type(kind: pa.DataType) -> str:
    """A type's name without what is a matter of encoding: long offsets, dictionaries, UUIDs as an extension, field ids."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{field.name}: {plain_type(field.type)}' for field in kind)}>"
    if pa.types.is_map(kind):
        return f"map<{plain_type(kind.key_type)}, {plain_type(kind.item_type)}>"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"list<{plain_type(kind.value_type)}>"
    if isinstance(kind, pa.UuidType):
        return plain_type(kind.storage_type)
    name = str(kind).removeprefix("large_")
    # A time zone of Iceberg's is always UTC, under one of two names.
    return name.replace("+00:00", "UTC")


def plain(value):
    """A value in a form whose `repr` is equal where values are: NaN, UUIDs and zones have several."""
    match value:
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case float() if math.isnan(value):
            return "NaN"
        case uuid.UUID():
            return value.bytes
        case datetime.datetime() if value.tzinfo:
            return value.astimezone(datetime.timezone.utc).isoformat()
        case _:
            return value
