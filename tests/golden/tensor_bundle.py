"""Reads TensorFlow's checkpoints without TensorFlow: the sorted table of the .index file and the
messages in it, from their descriptions; checksums are not looked at."""
import struct

import numpy as np

DTYPES = {1: np.float32, 2: np.float64, 3: np.int32, 9: np.int64, 19: np.float16}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def entries(data, handle):
    """Keys and values of the block at a handle (offset, size)."""
    offset, at = varint(handle, 0)
    size, _ = varint(handle, at)
    block = data[offset:offset + size]
    assert data[offset + size] == 0, "compressed"
    end = len(block) - 4 - 4 * struct.unpack("<I", block[-4:])[0]
    key, at = b"", 0
    while at < end:
        shared, at = varint(block, at)
        further, at = varint(block, at)
        length, at = varint(block, at)
        key = key[:shared] + block[at:at + further]
        yield key, block[at + further:at + further + length]
        at += further + length


def message(data):
    """{field: [values]}, submessages as bytes."""
    fields, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        else:
            width = {1: 8, 5: 4}[tag & 7]
            value, at = data[at:at + width], at + width
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def read(prefix):
    """{name: array} of all tensors of numbers."""
    with open(prefix + ".index", "rb") as file:
        index = file.read()
    _, at = varint(index, len(index) - 48)
    _, at = varint(index, at)
    table = [entry for _, handle in entries(index, index[at:]) for entry in entries(index, handle)]
    shards = message(table[0][1])[1][0]
    files = [open(f"{prefix}.data-{i:05d}-of-{shards:05d}", "rb").read() for i in range(shards)]
    tensors = {}
    for name, value in table[1:]:
        fields = message(value)
        dtype = DTYPES.get(fields[1][0])
        shape = [message(dim)[1][0] for dim in message(fields.get(2, [b""])[0]).get(2, [])]
        offset, size = fields.get(4, [0])[0], fields[5][0]
        data = files[fields.get(3, [0])[0]][offset:offset + size]
        if dtype is not None:
            tensors[name.decode()] = np.frombuffer(data, dtype).reshape(shape)
    return tensors
