"""What blocks cost when some columns of a large file are read: bytes fetched for bytes needed, by block size.

    python block_size.py FILE.parquet

Reads the footer of one Parquet file and plays reads of 1, 5 and 20 random columns (40 draws each, seeded): every range
is rounded to whole blocks, and ranges at most 64 KiB apart share a request, as floe-store does it.
"""

import os
import random
import sys

import pyarrow.parquet as pq

GAP = 64 * 1024
LINE_BITS_PER_SECOND = 20e6
DRAWS = 40


def ranges(metadata, size, columns):
    """The column chunks and the footer."""
    for group in range(metadata.num_row_groups):
        for column in columns:
            chunk = metadata.row_group(group).column(column)
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            yield start, start + chunk.total_compressed_size
    yield size - metadata.serialized_size - 8, size


def fetched(wanted, size, block):
    """Bytes and requests once ranges are whole blocks and near ones are joined."""
    joined = []
    for start, end in sorted((a // block * block, min(size, -(-b // block) * block)) for a, b in wanted):
        if joined and start - joined[-1][1] <= GAP:
            joined[-1][1] = max(end, joined[-1][1])
        else:
            joined.append([start, end])
    return sum(end - start for start, end in joined), len(joined)


def main():
    path = sys.argv[1]
    metadata, size = pq.read_metadata(path), os.path.getsize(path)
    print(f"{size / 1e6:.1f} MB, {metadata.num_row_groups} row groups, {metadata.num_columns} columns")
    draw = random.Random(7)
    for count in (1, 5, 20):
        draws = [draw.sample(range(metadata.num_columns), count) for _ in range(DRAWS)]
        for block in (4, 16, 64, 256, 1024):
            need = got = requests = 0
            for columns in draws:
                wanted = list(ranges(metadata, size, columns))
                need += sum(end - start for start, end in wanted)
                more, by = fetched(wanted, size, block * 1024)
                got, requests = got + more, requests + by
            seconds = got / DRAWS * 8 / LINE_BITS_PER_SECOND
            print(f"{count:3} columns, blocks of {block:4} KiB: {got / need:.2f} x the bytes needed, "
                  f"{requests / DRAWS:4.1f} requests, {seconds:.2f} s at 20 Mbit/s")


if __name__ == "__main__":
    main()
