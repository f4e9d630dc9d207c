/* Protocol buffers' wire format, to read (https://protobuf.dev/programming-guides/encoding): a
 * message is a row of fields, each a varint `number << 3 | type` and a value. */
#ifndef TDM_INTERCHANGE_PROTOBUF_H
#define TDM_INTERCHANGE_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that are read from the front. */
typedef struct tdm_wire {
    const unsigned char *next, *end;
} tdm_wire;

static inline size_t tdm_wire_left(const tdm_wire *wire)
{
    return (size_t)(wire->end - wire->next);
}

/* Takes a varint: 7 bits a byte, the lowest first, the high bit where more follow. False where
 * there is none, or it has more than 64 bits. */
bool tdm_wire_varint(tdm_wire *wire, uint64_t *value);

/* Little-endian. */
uint64_t tdm_little_endian(const unsigned char *data, int bytes);

typedef enum tdm_wire_type {
    TDM_WIRE_VARINT = 0,
    TDM_WIRE_FIXED64 = 1,
    TDM_WIRE_BYTES = 2, /* a string or a message */
    TDM_WIRE_FIXED32 = 5,
} tdm_wire_type;

typedef struct tdm_wire_field {
    uint64_t number;
    tdm_wire_type type;
    uint64_t value; /* of the other types */
    tdm_wire bytes; /* of TDM_WIRE_BYTES, within the message */
} tdm_wire_field;

/* Takes the next field. False at the end of the message, and where it is damaged: then *good
 * becomes false. */
bool tdm_wire_next(tdm_wire *message, tdm_wire_field *field, bool *good);

#endif
