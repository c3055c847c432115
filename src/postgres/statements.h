/* statements: which statements are prepared on a connection.
 *
 * A statement is known by the address of its text and the types of its values (the compiler may
 * give two equal texts one address, and a null value has no type). A preparation that failed, or was skipped
 * because one before it failed, leaves nothing: the statement is prepared again under another
 * number.
 *
 * Private to postgres/.
 *
 * Memory   owns the list.
 * Threads  the loop's.
 */
#ifndef WEIR_POSTGRES_STATEMENTS_H
#define WEIR_POSTGRES_STATEMENTS_H

#include "base/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct statement {
    const char *sql;
    uint64_t types;
    unsigned number; /* 0: not prepared */
};

struct statements {
    struct statement *all;
    size_t count, room;
    unsigned last; /* the newest number */
};

#define STATEMENT_NAME_BYTES 16

/* The number of a statement. *ret_new: it has yet to be prepared under this number. */
unsigned statements_number(struct statements *statements, const char *sql, uint64_t types,
                           bool *ret_new);

/* The preparation under this number did not happen. */
void statements_forget(struct statements *statements, unsigned number);

void statements_done(struct statements *statements);

void statement_name(unsigned number, char ret[static STATEMENT_NAME_BYTES]);

#endif
