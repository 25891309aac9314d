"""Tables of Iceberg's own REST catalog server (Java), made and filled by PyIceberg, read by floe."""

import uuid

import pytest
from conftest import Lab, numbers, same_rows, variable
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.types import StringType


@pytest.fixture
def rest(lab: Lab) -> Catalog:
    properties = {"type": "rest", "uri": variable("FLOE_TEST_REST")}
    lab.configure("interop", properties)
    return load_catalog("interop", **properties)


@pytest.fixture
def namespace(rest: Catalog) -> str:
    """A namespace that no other test has: all share one server."""
    name = f"t{uuid.uuid4().hex}"
    rest.create_namespace(name)
    return name


def test_tables_are_listed_shown_and_read(rest: Catalog, namespace: str, lab: Lab):
    assert lab.tables(namespace) == []
    table = rest.create_table(f"{namespace}.numbers", schema=numbers(0, 1).schema)
    table.append(numbers(0, 10))
    assert lab.tables(namespace) == [f"{namespace}.numbers"]
    assert f"{namespace}.numbers" in lab.tables()
    shown = lab.json("table", "show", f"{namespace}.numbers")
    assert shown["uuid"] == str(table.metadata.table_uuid)
    assert (shown["metadata_location"], shown["rows"]) == (table.metadata_location, 10)
    same_rows(lab.scan(f"{namespace}.numbers"), table.scan().to_arrow())
    assert lab.sql(f"SELECT sum(id) AS n FROM {namespace}.numbers WHERE id > 3") == [{"n": 39}]


def test_an_append_between_two_scans_is_seen_by_the_second(rest: Catalog, namespace: str, lab: Lab):
    table = rest.create_table(f"{namespace}.fresh", schema=numbers(0, 1).schema)
    for end in [10, 20]:
        table.append(numbers(end - 10, end))
        assert lab.count(f"{namespace}.fresh") == end


def test_a_changed_schema_is_read_as_the_server_has_it(rest: Catalog, namespace: str, lab: Lab):
    table = rest.create_table(f"{namespace}.evolved", schema=numbers(0, 1).schema)
    table.append(numbers(0, 5))
    with table.update_schema() as change:
        change.rename_column("name", "label")
        change.add_column("more", StringType())
    same_rows(lab.scan(f"{namespace}.evolved"), table.scan().to_arrow())


@pytest.mark.parametrize("name", ["two words", "größe", "a+b", "50%", "a%20b", "who?", "a#b", "a&b=c"])
def test_a_table_of_any_name_is_listed_and_read(rest: Catalog, namespace: str, lab: Lab, name: str):
    # PyIceberg takes `#` and `?` for the end of a path, and would write all files of such a table over each other.
    location = f"file://{lab.dir}/elsewhere" if set(name) & set("#?") else None
    table = rest.create_table((namespace, name), schema=numbers(0, 1).schema, location=location)
    table.append(numbers(0, 3))
    assert lab.tables(namespace) == [f"{namespace}.{name}"]
    same_rows(lab.scan(f"{namespace}.{name}"), table.scan().to_arrow())


def test_nested_namespaces_are_listed_and_read(rest: Catalog, namespace: str, lab: Lab):
    rest.create_namespace((namespace, "inner"))
    table = rest.create_table((namespace, "inner", "deep"), schema=numbers(0, 1).schema)
    table.append(numbers(0, 6))
    assert f"{namespace}.inner.deep" in lab.tables()
    same_rows(lab.scan(f"{namespace}.inner.deep"), table.scan().to_arrow())


def test_what_is_not_there_is_said_by_name(rest: Catalog, namespace: str, lab: Lab):
    for table in [f"{namespace}.missing", "missing_namespace.t"]:
        run = lab.run("scan", table)
        assert run.returncode == 1 and table.split(".")[-1] in run.stderr


def test_a_server_that_is_gone_is_said_by_its_address(lab: Lab):
    lab.configure("interop", {"type": "rest", "uri": "http://127.0.0.1:9"})
    run = lab.run("table", "list")
    assert run.returncode == 1 and run.stderr.startswith("Error: ") and "127.0.0.1:9" in run.stderr
