#include "postgres/statements.h"

#include "base/mem.h"

#include <assert.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

static struct statement *statement_find(struct statements *statements, const char *sql,
                                        uint64_t types) {
    for (size_t i = 0; i < statements->count; i++) {
        struct statement *at = &statements->all[i];
        if (at->sql == sql && at->types == types) return at;
    }
    return NULL;
}

static struct statement *statement_add(struct statements *statements, const char *sql,
                                       uint64_t types) {
    if (statements->count == statements->room) {
        statements->room = statements->room ? 2 * statements->room : 16;
        statements->all =
            mem_resize(statements->all, statements->room * sizeof(struct statement));
    }
    struct statement *statement = &statements->all[statements->count++];
    *statement = (struct statement){.sql = sql, .types = types};
    return statement;
}

unsigned statements_number(struct statements *statements, const char *sql, uint64_t types,
                           bool *ret_new) {
    struct statement *statement = statement_find(statements, sql, types);
    if (!statement) statement = statement_add(statements, sql, types);
    *ret_new = statement->number == 0;
    if (*ret_new) statement->number = ++statements->last;
    return statement->number;
}

void statements_forget(struct statements *statements, unsigned number) {
    for (size_t i = 0; i < statements->count; i++) {
        if (statements->all[i].number == number) statements->all[i].number = 0;
    }
}

void statements_done(struct statements *statements) {
    free(statements->all);
}

/* --- values --------------------------------------------------------------------------------- */

/* Types of the server, catalog/pg_type.dat. */
enum { OID_BYTES = 17, OID_BIGINT = 20, OID_TEXT = 25 };

static void encode_values(const struct postgres_step *step, struct encoded *ret) {
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

/* Two bits each. */
static uint64_t types_of(const struct postgres_step *step) {
    uint64_t types = 0;
    for (size_t i = 0; i < step->value_count; i++)
        types = types << 2 | (uint64_t)step->values[i].type;
    return types;
}

void statements_encode(struct statements *statements, const struct postgres_step *step,
                       struct encoded *ret) {
    encode_values(step, ret);
    ret->number = statements_number(statements, step->sql, types_of(step), &ret->is_new);
    snprintf(ret->name, sizeof(ret->name), "w%u", ret->number);
}
