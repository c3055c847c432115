/* statements: which statements are prepared on a connection.
 *
 * A statement is known by the address of its text and the types of its values (the compiler may
 * give two equal texts one address, and a null value has no type). A preparation that failed, or was skipped
 * because one before it failed, leaves nothing: the statement is prepared again under another
 * number. Values travel in the server's binary form.
 *
 * Private to postgres/.
 *
 * Memory   owns the list; what is encoded borrows the step's bytes.
 * Threads  its connection's.
 */
#ifndef WEIR_POSTGRES_STATEMENTS_H
#define WEIR_POSTGRES_STATEMENTS_H

#include "postgres/libpq.h"
#include "postgres/postgres.h"

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

/* The number of a statement. *ret_new: it has yet to be prepared under this number. */
unsigned statements_number(struct statements *statements, const char *sql, uint64_t types,
                           bool *ret_new);

/* The preparation under this number did not happen. */
void statements_forget(struct statements *statements, unsigned number);

void statements_done(struct statements *statements);

/* --- a step as libpq takes it ----------------------------------------------------------------- */

enum { ENCODE_BINARY = 1 }; /* libpq's format code */

struct encoded {
    Oid types[POSTGRES_VALUES_MAX];
    const char *values[POSTGRES_VALUES_MAX];
    int lengths[POSTGRES_VALUES_MAX], formats[POSTGRES_VALUES_MAX];
    uint64_t numbers[POSTGRES_VALUES_MAX];
    char name[16]; /* of its prepared statement */
    unsigned number;
    bool is_new; /* the statement has yet to be prepared */
};

void statements_encode(struct statements *statements, const struct postgres_step *step,
                       struct encoded *ret);

#endif
