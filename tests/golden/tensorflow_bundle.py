"""Reads a TensorFlow checkpoint (tensor bundle): float32 tensors by name, with numpy alone.

The index is a table of LevelDB's form (doc/table_format.md), uncompressed: blocks of entries whose
keys share prefixes, an index block of handles, a footer of 48 bytes. Its values are protocol
buffers, BundleEntryProto of tensor_bundle.proto: 1 dtype, 2 shape, 3 shard, 4 offset, 5 size.
"""
import struct

import numpy as np

MAGIC = 0xdb4775248b80fb57
FLOAT = 1


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def block_entries(data, offset, size):
    assert data[offset + size] == 0, "a compressed block"
    block = data[offset:offset + size]
    restarts = struct.unpack("<I", block[-4:])[0]
    end, at, key = size - 4 - 4 * restarts, 0, b""
    while at < end:
        shared, at = varint(block, at)
        rest, at = varint(block, at)
        length, at = varint(block, at)
        key = key[:shared] + block[at:at + rest]
        at += rest
        yield key, block[at:at + length]
        at += length


def fields(message):
    """(number, value) of a protocol buffer; of length-delimited fields the bytes."""
    at = 0
    while at < len(message):
        tag, at = varint(message, at)
        if tag & 7 == 0:
            value, at = varint(message, at)
        elif tag & 7 == 2:
            length, at = varint(message, at)
            value, at = message[at:at + length], at + length
        else:
            assert tag & 7 == 5, f"wire type {tag & 7}"
            value, at = message[at:at + 4], at + 4
        yield tag >> 3, value


def shape_of(message):
    sizes = []
    for number, value in fields(message):
        if number == 2:
            sizes.append(dict(fields(value)).get(1, 0))
    return tuple(sizes)


def read(prefix):
    with open(f"{prefix}.index", "rb") as file:
        index = file.read()
    with open(f"{prefix}.data-00000-of-00001", "rb") as file:
        data = file.read()
    assert struct.unpack("<Q", index[-8:])[0] == MAGIC
    at = len(index) - 48
    for _ in range(2):  # of the metaindex, which says nothing here
        _, at = varint(index, at)
    offset, at = varint(index, at)
    size, at = varint(index, at)
    tensors = {}
    for _, handle in block_entries(index, offset, size):
        begin, after = varint(handle, 0)
        length, _ = varint(handle, after)
        for key, value in block_entries(index, begin, length):
            entry = dict(fields(value))
            if key == b"" or entry.get(1, 0) != FLOAT:
                continue
            assert entry.get(3, 0) == 0, "more than one shard"
            raw = data[entry.get(4, 0):entry.get(4, 0) + entry.get(5, 0)]
            tensors[key.decode()] = np.frombuffer(raw, "<f4").reshape(shape_of(entry.get(2, b"")))
    return tensors
