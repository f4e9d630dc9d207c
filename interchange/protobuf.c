#include "interchange/protobuf.h"

bool tdm_wire_varint(tdm_wire *wire, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && wire->next < wire->end; shift += 7) {
        uint64_t bits = *wire->next & 0x7f;
        bool is_last = (*wire->next++ & 0x80) == 0;
        if (shift == 63 && bits > 1)
            return false;
        *value |= bits << shift;
        if (is_last)
            return true;
    }
    return false;
}

uint64_t tdm_little_endian(const unsigned char *data, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | data[i];
    return value;
}

static bool take_fixed(tdm_wire *message, int bytes, uint64_t *value)
{
    if (tdm_wire_left(message) < (size_t)bytes)
        return false;
    *value = tdm_little_endian(message->next, bytes);
    message->next += bytes;
    return true;
}

static bool take_bytes(tdm_wire *message, tdm_wire *bytes)
{
    uint64_t length;
    if (!tdm_wire_varint(message, &length) || length > tdm_wire_left(message))
        return false;
    *bytes = (tdm_wire){message->next, message->next + length};
    message->next += length;
    return true;
}

static bool take_value(tdm_wire *message, tdm_wire_field *field)
{
    switch (field->type) {
    case TDM_WIRE_VARINT:
        return tdm_wire_varint(message, &field->value);
    case TDM_WIRE_FIXED64:
        return take_fixed(message, 8, &field->value);
    case TDM_WIRE_BYTES:
        return take_bytes(message, &field->bytes);
    case TDM_WIRE_FIXED32:
        return take_fixed(message, 4, &field->value);
    }
    return false;
}

bool tdm_wire_next(tdm_wire *message, tdm_wire_field *field, bool *good)
{
    if (message->next == message->end)
        return false;
    uint64_t tag;
    *field = (tdm_wire_field){0};
    *good = false;
    if (!tdm_wire_varint(message, &tag))
        return false;
    field->number = tag >> 3;
    field->type = (tdm_wire_type)(tag & 7);
    *good = field->number > 0 && take_value(message, field);
    return *good;
}
