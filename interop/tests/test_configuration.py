"""One catalog, found by PyIceberg and by floe in the places that PyIceberg looks in."""

import json
import subprocess
import sys

import pytest
from conftest import Lab, numbers
from pyiceberg.catalog import Catalog

# PyIceberg reads its configuration once, when it is imported: each look needs a process of its own.
LOOK = """
import json, sys
from pyiceberg.catalog import load_catalog
catalog = load_catalog(*sys.argv[1:])
names = [".".join(table) for namespace in catalog.list_namespaces() for table in catalog.list_tables(namespace)]
print(json.dumps({"catalog": catalog.name, "tables": sorted(names)}))
"""


def pyiceberg_finds(lab: Lab, *name: str, env: dict[str, str] | None = None) -> dict:
    run = subprocess.run(
        [sys.executable, "-c", LOOK, *name], cwd=lab.dir, env=lab.environment(env), capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.fixture
def filled(sqlite: Catalog, lab: Lab) -> Lab:
    """A catalog with one table, and no `floe.toml` that tells of it."""
    sqlite.create_namespace("t")
    sqlite.create_table("t.numbers", schema=numbers(0, 1).schema).append(numbers(0, 5))
    (lab.dir / "floe.toml").unlink()
    lab.flags = []
    return lab


def uri(lab: Lab) -> str:
    return f"sqlite:///{lab.dir}/catalog.db"


def write_yaml(lab: Lab, folder: str, text: str) -> None:
    (lab.dir / folder).mkdir(exist_ok=True)
    (lab.dir / folder / ".pyiceberg.yaml").write_text(text)


def test_a_yaml_file_in_the_home_directory_is_found(filled: Lab):
    write_yaml(filled, "home", f"catalog:\n  interop:\n    type: sql\n    uri: {uri(filled)}\n")
    assert pyiceberg_finds(filled, "interop")["tables"] == filled.tables("--catalog", "interop") == ["t.numbers"]
    assert filled.count("t.numbers", "--catalog", "interop") == 5


def test_a_yaml_file_where_pyiceberg_home_points_comes_first(filled: Lab):
    write_yaml(filled, "home", "catalog:\n  interop:\n    type: sql\n    uri: sqlite:////nowhere/x.db\n")
    write_yaml(filled, "conf", f"catalog:\n  interop:\n    type: sql\n    uri: {uri(filled)}\n")
    env = {"PYICEBERG_HOME": str(filled.dir / "conf")}
    assert pyiceberg_finds(filled, "interop", env=env)["tables"] == filled.tables(env=env) == ["t.numbers"]


def test_a_yaml_file_in_the_working_directory_is_found_last(filled: Lab):
    write_yaml(filled, ".", f"catalog:\n  interop:\n    type: sql\n    uri: {uri(filled)}\n")
    assert pyiceberg_finds(filled, "interop")["tables"] == filled.tables() == ["t.numbers"]


def test_the_default_catalog_is_the_one_that_is_named_so(filled: Lab):
    catalogs = {"other": "sqlite:////nowhere/x.db", "interop": uri(filled)}
    text = "".join(f"  {name}:\n    type: sql\n    uri: {place}\n" for name, place in catalogs.items())
    write_yaml(filled, "home", f"default-catalog: interop\ncatalog:\n{text}")
    assert pyiceberg_finds(filled) == {"catalog": "interop", "tables": ["t.numbers"]}
    assert filled.tables() == ["t.numbers"]


def test_variables_alone_are_enough(filled: Lab):
    env = {"PYICEBERG_CATALOG__INTEROP__TYPE": "sql", "PYICEBERG_CATALOG__INTEROP__URI": uri(filled)}
    assert pyiceberg_finds(filled, "interop", env=env)["tables"] == ["t.numbers"]
    assert filled.tables("--catalog", "interop", env=env) == ["t.numbers"]


def test_variables_replace_what_the_file_says(filled: Lab):
    write_yaml(filled, "home", "catalog:\n  interop:\n    type: sql\n    uri: sqlite:////nowhere/x.db\n")
    env = {"PYICEBERG_CATALOG__INTEROP__URI": uri(filled), "PYICEBERG_DEFAULT_CATALOG": "interop"}
    assert pyiceberg_finds(filled, env=env) == {"catalog": "interop", "tables": ["t.numbers"]}
    assert filled.tables(env=env) == ["t.numbers"]


def test_nested_names_of_properties_are_the_same_in_files_and_variables(filled: Lab):
    text = f"catalog:\n  interop:\n    type: sql\n    uri: {uri(filled)}\n    s3.region: a\n    s3.endpoint: http://127.0.0.1:9\n"
    write_yaml(filled, "home", text)
    env = {"PYICEBERG_CATALOG__INTEROP__S3__REGION": "b", "PYICEBERG_CATALOG__INTEROP__S3__ACCESS_KEY_ID": "key"}
    script = "import json\nfrom pyiceberg.catalog import load_catalog\nprint(json.dumps(load_catalog('interop').properties))"
    run = subprocess.run([sys.executable, "-c", script], cwd=filled.dir, env=filled.environment(env), capture_output=True)
    theirs = json.loads(run.stdout)
    entries = {entry["key"]: entry for entry in filled.json("config", env=env)["entries"]}
    for key in ["s3.region", "s3.endpoint", "uri"]:
        assert entries[f"catalog.interop.{key}"]["value"] == theirs[key]
    assert theirs["s3.access-key-id"] == "key" and "catalog.interop.s3.access-key-id" in entries
    assert "PYICEBERG_CATALOG__INTEROP__S3__REGION" in entries["catalog.interop.s3.region"]["source"]


def test_a_file_in_the_working_directory_does_not_get_credentials_from_elsewhere(filled: Lab):
    text = f"catalog:\n  interop:\n    type: sql\n    uri: {uri(filled)}\n    s3.endpoint: http://127.0.0.1:9\n"
    write_yaml(filled, ".", text)
    env = {"PYICEBERG_CATALOG__INTEROP__S3__SECRET_ACCESS_KEY": "hush-hush"}
    run = filled.run("table", "list", env=env)
    assert run.returncode == 1 and "s3.endpoint" in run.stderr and "--config" in run.stderr
    assert "hush-hush" not in run.stdout + run.stderr + filled.done("config", env=env).stdout
