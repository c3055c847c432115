/* uuid: random ids of rows.
 *
 * Threads  any.
 * Source   RFC 9562 5.4 (version 4).
 */
#ifndef WEIR_ORCHESTRATOR_UUID_H
#define WEIR_ORCHESTRATOR_UUID_H

#include "base/str.h"

#define UUID_BYTES 36

/* 36 characters, without a NUL. */
struct uuid {
    char text[UUID_BYTES];
};

struct uuid uuid_new(void);

static inline struct str uuid_str(const struct uuid *uuid) {
    return str_of(uuid->text, UUID_BYTES);
}

#endif
