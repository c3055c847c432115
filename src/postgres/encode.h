/* encode: the values of a step in the server's binary form.
 *
 * Private to postgres/.
 *
 * Memory   borrows the step's bytes.
 * Threads  any; values only.
 */
#ifndef WEIR_POSTGRES_ENCODE_H
#define WEIR_POSTGRES_ENCODE_H

#include "postgres/libpq.h"
#include "postgres/postgres.h"

enum { ENCODE_BINARY = 1 }; /* libpq's format code */

struct encoded {
    Oid types[POSTGRES_VALUES_MAX];
    const char *values[POSTGRES_VALUES_MAX];
    int lengths[POSTGRES_VALUES_MAX], formats[POSTGRES_VALUES_MAX];
    uint64_t numbers[POSTGRES_VALUES_MAX];
};

void encode_step(const struct postgres_step *step, struct encoded *ret);

/* The types of the values, two bits each. */
uint64_t encode_types(const struct postgres_step *step);

#endif
