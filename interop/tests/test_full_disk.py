"""A cache on a disk that is too small, full or read-only: floe goes on reading from the origin and says so once.

The disk is a tmpfs, for which the suite has to be root; the origin is moto's S3 server, a second implementation beside the one
that floe brings for its own tests.
"""

import hashlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from conftest import Lab, same_rows
from moto.server import ThreadedMotoServer
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

DISK_BYTES = 8 * 2**20
FILES = 6
ROWS_A_FILE = 3000


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    """A table in S3, about twice as large as the disk."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        yield noise(tmp_path_factory.mktemp("s3"), "http://{}:{}".format(*server.get_host_and_port()))
    finally:
        server.stop()


def noise(folder: Path, endpoint: str) -> Table:
    """The table `t.noise`, whose rows don't compress."""
    pyarrow.fs.S3FileSystem(
        endpoint_override=endpoint, region="us-east-1", access_key="key", secret_key="secret", allow_bucket_creation=True
    ).create_dir("lake")
    catalog = SqlCatalog("interop", **{
        "type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": "s3://lake", "s3.endpoint": endpoint,
        "s3.region": "us-east-1", "s3.path-style-access": "true", "s3.access-key-id": "key", "s3.secret-access-key": "secret",
    })  # fmt: skip
    catalog.create_namespace("t")
    table = catalog.create_table("t.noise", schema=pa.schema([("id", pa.int64()), ("noise", pa.binary())]))
    for file in range(FILES):
        ids = range(file * ROWS_A_FILE, (file + 1) * ROWS_A_FILE)
        table.append(pa.table({"id": pa.array(ids), "noise": [hashlib.shake_128(str(i).encode()).digest(1024) for i in ids]}))
    sizes = table.inspect.files()["file_size_in_bytes"].to_pylist()
    assert len(sizes) == FILES and sum(sizes) > 2 * DISK_BYTES
    return table


@pytest.fixture
def disk(lab: Lab) -> Iterator[Path]:
    """A small file system of its own."""
    path = lab.dir / "disk"
    path.mkdir()
    mount("-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=0700", "tmpfs", str(path))
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)


def mount(*arguments: str) -> None:
    run = subprocess.run(["mount", *arguments], capture_output=True, text=True)
    if run.returncode != 0:
        pytest.fail(f"mount {' '.join(arguments)} was refused ({run.stderr.strip()}): this test has to run as root")


def cache_on(lab: Lab, disk: Path, table: Table) -> None:
    """The table is read through a cache on this disk, which may be filled to its last byte."""
    lab.configure("interop", table.catalog.properties, dir=str(disk / "cache"), max_bytes=2**30, keep_free_bytes=0)


def read_all(lab: Lab, table: Table, expected_warnings: int) -> dict:
    """One whole read by floe, which is right and exits with 0; gives its timings."""
    path = lab.dir / "rows.parquet"
    run = lab.done("scan", "t.noise", "--output", str(path), "--timings", "--json")
    assert len(run.stderr.splitlines()) <= expected_warnings, run.stderr
    same_rows(pq.read_table(path), table.scan().to_arrow())
    return json.loads(run.stdout)["timings"]


def files_that_verify(lab: Lab) -> int:
    """How many files the cache holds, all of which are whole."""
    report = lab.json("cache", "verify")
    assert report["corrupt"] == 0, report
    return report["files"]


def test_a_disk_smaller_than_the_table_costs_no_row(table: Table, lab: Lab, disk: Path):
    cache_on(lab, disk, table)
    for _ in range(2):
        assert read_all(lab, table, expected_warnings=1)["origin_bytes"] > DISK_BYTES
        files_that_verify(lab)


def test_a_disk_that_became_full_costs_no_row_and_is_used_again(table: Table, lab: Lab, disk: Path):
    cache_on(lab, disk, table)
    warm_a_part(lab)
    fill(disk / "ballast")
    read_all(lab, table, expected_warnings=1)
    files_that_verify(lab)
    (disk / "ballast").unlink()
    warm_a_part(lab)


def test_a_disk_that_was_full_from_the_start_costs_no_row_and_is_used_later(table: Table, lab: Lab, disk: Path):
    cache_on(lab, disk, table)
    fill(disk / "ballast")
    read_all(lab, table, expected_warnings=1)
    (disk / "ballast").unlink()
    warm_a_part(lab)


def test_a_warm_cache_that_became_read_only_still_serves(table: Table, lab: Lab, disk: Path):
    cache_on(lab, disk, table)
    warm_a_part(lab)
    mount("-o", "remount,ro", str(disk))
    served = lab.json("scan", "t.noise", "--where", "id < 100", "--count", "--timings")
    assert served["rows"] == 100 and served["timings"]["requests"] == 0
    # The rest comes from the origin, and is not kept.
    timings = read_all(lab, table, expected_warnings=1)
    assert timings["disk_bytes"] > 0 and timings["origin_bytes"] > DISK_BYTES
    assert files_that_verify(lab) > 0
    mount("-o", "remount,rw", str(disk))
    assert files_that_verify(lab) > 0


def test_a_read_only_disk_without_a_cache_costs_no_row(table: Table, lab: Lab, disk: Path):
    cache_on(lab, disk, table)
    mount("-o", "remount,ro", str(disk))
    read_all(lab, table, expected_warnings=1)


def warm_a_part(lab: Lab) -> None:
    """Fetches one data file, for which there is room."""
    lab.done("cache", "warm", "t.noise", "--where", "id < 100")
    assert files_that_verify(lab) > 0


def fill(path: Path) -> None:
    """Takes what is left of a disk, to the last byte."""
    with open(path, "wb", buffering=0) as file:
        for size in [2**16, 1]:
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError as error:
                assert error.errno == 28, error
