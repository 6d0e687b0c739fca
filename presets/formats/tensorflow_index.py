"""The `.index` file of a TensorFlow checkpoint: a LevelDB-style table of small protocol buffers, read without either.

Layout: https://github.com/google/leveldb/blob/main/doc/table_format.md for the table, and TensorFlow's
core/protobuf/tensor_bundle.proto for its values.
"""

from collections.abc import Iterator
from typing import NamedTuple

import google_crc32c
import numpy as np

from garden.protobuf import fields, read_varint

FOOTER_SIZE = 48
MAGIC = 0xDB4775248B80FB57.to_bytes(8, "little")


class BundleEntry(NamedTuple):
    """Where one variable lies: `size` bytes from `offset` of data file `shard`; `crc` is their masked CRC-32C."""

    dtype: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    crc: int
    partitioned: bool


def parse_index(table: bytes) -> tuple[int, dict[str, BundleEntry]]:
    """The number of data files, and the variables by name. ValueError says what is wrong with the table."""
    items = dict(read_table(table))
    header = dict(fields(items.pop(b"")))  # the empty key; field 1 number of data files, 2 byte order
    if header.get(2, 0):
        raise ValueError("it was written on a big-endian machine")
    # A key that starts with 0 is one slice of a partitioned variable, whose own entry says so.
    entries = {key.decode(): parse_entry(value) for key, value in items.items() if not key.startswith(b"\0")}
    return header[1], entries


def parse_entry(message: bytes) -> BundleEntry:
    """Decodes a BundleEntryProto. Zeros are not stored, and neither is the shape of a scalar."""
    found = list(fields(message))
    value = dict(found)
    dimensions = [dimension for number, dimension in fields(value.get(2, b"")) if number == 2]
    shape = tuple(dict(fields(dimension)).get(1, 0) for dimension in dimensions)
    return BundleEntry(value[1], shape, *(value.get(number, 0) for number in (3, 4, 5, 6)), partitioned=7 in value)


def read_table(table: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Key and value of every row of a table."""
    if len(table) < FOOTER_SIZE or table[-8:] != MAGIC:
        raise ValueError("it is truncated or no TensorFlow index (no table footer)")
    footer = table[-FOOTER_SIZE:]
    _, position = read_handle(footer, 0)  # the index of filters, of which TensorFlow writes none
    root, _ = read_handle(footer, position)
    for _, handle in read_block(table, root):
        yield from read_block(table, read_handle(handle, 0)[0])


def read_block(table: bytes, handle: tuple[int, int]) -> Iterator[tuple[bytes, bytes]]:
    """Key and value of every row of a block: each key states only what follows the part it shares with the last."""
    offset, size = handle
    block, trailer = table[offset : offset + size], table[offset + size : offset + size + 5]
    if len(trailer) < 5 or masked_crc(block + trailer[:1]) != int.from_bytes(trailer[1:], "little"):
        raise ValueError(f"the block at byte {offset} is damaged (checksum)")
    if trailer[0]:
        raise ValueError("it is compressed, which TensorFlow never does")
    end = size - 4 - 4 * int.from_bytes(block[-4:], "little")  # the restart points, which only a search needs
    position, key = 0, b""
    while position < end:
        shared, position = read_varint(block, position)
        rest, position = read_varint(block, position)
        length, position = read_varint(block, position)
        key = key[:shared] + block[position : position + rest]
        position += rest + length
        yield key, block[position - length : position]


def read_handle(data: bytes, position: int) -> tuple[tuple[int, int], int]:
    """Offset and size of a block, and the position after them."""
    offset, position = read_varint(data, position)
    size, position = read_varint(data, position)
    return (offset, size), position


def masked_crc(data: bytes | np.ndarray) -> int:
    """CRC-32C, rotated and shifted as TensorFlow and LevelDB store it."""
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
