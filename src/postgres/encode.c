#include "postgres/encode.h"

#include <assert.h>
#include <endian.h>

/* Types of the server, catalog/pg_type.dat. */
enum { OID_BYTES = 17, OID_BIGINT = 20, OID_TEXT = 25 };

void encode_step(const struct postgres_step *step, struct encoded *ret) {
    assert(step->value_count <= POSTGRES_VALUES_MAX);
    for (size_t i = 0; i < step->value_count; i++) {
        const struct postgres_value *value = &step->values[i];
        assert(value->bytes.len <= INT32_MAX);
        ret->formats[i] = ENCODE_BINARY;
        ret->types[i] = value->type == POSTGRES_INT     ? OID_BIGINT
                        : value->type == POSTGRES_BYTES ? OID_BYTES
                        : value->type == POSTGRES_TEXT  ? OID_TEXT
                                                        : 0;
        ret->values[i] = value->bytes.len ? value->bytes.at : "";
        ret->lengths[i] = (int)value->bytes.len;
        if (value->type == POSTGRES_NULL) ret->values[i] = NULL;
        if (value->type != POSTGRES_INT) continue;
        ret->numbers[i] = htobe64((uint64_t)value->number);
        ret->values[i] = (const char *)&ret->numbers[i];
        ret->lengths[i] = sizeof(uint64_t);
    }
}

uint64_t encode_types(const struct postgres_step *step) {
    uint64_t types = 0;
    for (size_t i = 0; i < step->value_count; i++)
        types = types << 2 | (uint64_t)step->values[i].type;
    return types;
}
