"""PyIceberg's SQL catalog on a real PostgreSQL server, read by floe through the same URI."""

import uuid
from urllib.parse import unquote, urlsplit

import pytest
from conftest import Lab, numbers, same_rows, variable
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog


def uri() -> str:
    """As SQLAlchemy spells it; the password is percent-encoded."""
    return variable("FLOE_TEST_POSTGRES").replace("postgresql://", "postgresql+psycopg2://", 1)


@pytest.fixture
def postgres(lab: Lab) -> Catalog:
    """A catalog of a name that no other test has: all share one database."""
    name = f"interop_{uuid.uuid4().hex}"
    lab.configure(name, {"type": "sql", "uri": uri()})
    return SqlCatalog(name, uri=uri(), warehouse=f"file://{lab.dir}/warehouse")


def test_tables_are_listed_shown_and_read(postgres: Catalog, lab: Lab):
    assert lab.tables() == []
    for namespace in ["a", "a.b"]:
        postgres.create_namespace(namespace)
    table = postgres.create_table("a.b.numbers", schema=numbers(0, 1).schema)
    postgres.create_table("a.größe %", schema=numbers(0, 1).schema).append(numbers(0, 3))
    table.append(numbers(0, 10))
    assert lab.tables() == ["a.b.numbers", "a.größe %"]
    shown = lab.json("table", "show", "a.b.numbers")
    assert shown["uuid"] == str(table.metadata.table_uuid)
    assert (shown["metadata_location"], shown["rows"]) == (table.metadata_location, 10)
    assert [column["name"] for column in shown["schema"]] == ["id", "name"]
    same_rows(lab.scan("a.b.numbers"), table.scan().to_arrow())
    assert lab.count("a.größe %") == 3


def test_an_append_between_two_scans_is_seen_by_the_second(postgres: Catalog, lab: Lab):
    postgres.create_namespace("t")
    table = postgres.create_table("t.fresh", schema=numbers(0, 1).schema)
    for end in [10, 20]:
        table.append(numbers(end - 10, end))
        assert lab.count("t.fresh") == end
    snapshots = lab.json("table", "snapshots", "t.fresh")["snapshots"]
    assert [s["snapshot_id"] for s in snapshots] == [s.snapshot_id for s in table.snapshots()]


def test_renamed_and_dropped_tables_are_so_at_once(postgres: Catalog, lab: Lab):
    postgres.create_namespace("t")
    postgres.create_table("t.one", schema=numbers(0, 1).schema).append(numbers(0, 4))
    postgres.rename_table("t.one", "t.two")
    assert lab.tables() == ["t.two"] and lab.count("t.two") == 4
    gone = lab.run("scan", "t.one")
    assert gone.returncode == 1 and "t.one" in gone.stderr
    postgres.drop_table("t.two")
    assert lab.tables() == []


def test_catalogs_of_one_database_are_apart(postgres: Catalog, lab: Lab):
    postgres.create_namespace("t")
    postgres.create_table("t.mine", schema=numbers(0, 1).schema)
    other = SqlCatalog(f"{postgres.name}_other", uri=uri(), warehouse=f"file://{lab.dir}/other")
    other.create_namespace("t")
    other.create_table("t.theirs", schema=numbers(0, 1).schema)
    assert lab.tables() == ["t.mine"]


def test_a_wrong_password_is_an_error_that_does_not_tell_it(postgres: Catalog, lab: Lab):
    password = urlsplit(uri()).password
    lab.configure(postgres.name, {"type": "sql", "uri": uri().replace(password, "wrong-one")})
    run = lab.run("table", "list")
    assert run.returncode == 1 and run.stderr.startswith("Error: ")
    shown = lab.done("config").stdout
    assert "wrong-one" not in run.stderr + shown
    assert unquote(password) not in run.stderr + shown
