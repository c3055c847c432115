#include "postgres/statements.h"

#include "base/mem.h"

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

void statement_name(unsigned number, char ret[static STATEMENT_NAME_BYTES]) {
    snprintf(ret, STATEMENT_NAME_BYTES, "w%u", number);
}
