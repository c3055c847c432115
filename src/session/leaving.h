/* leaving: what happens to a run when its caller leaves.
 *
 *     cancel            it ends at once
 *     detach            it goes on without a listener
 *     detach-for=30s    it goes on, and ends when it has had no reader for that long
 *
 * Each listener has a setting, and an HTTP request may override it.
 *
 * Memory   a plain value.
 * Threads  none.
 * Source   conventions.md b10: a contract's default is kept, a caller may choose. */
#ifndef WEIR_SESSION_LEAVING_H
#define WEIR_SESSION_LEAVING_H

#include "base/buf.h"
#include "base/err.h"

enum leaving_how {
    LEAVING_CANCELS,
    LEAVING_DETACHES,
    LEAVING_NONE, /* the caller has not left: cancelled by request. Has no text form */
};

struct leaving {
    enum leaving_how how;
    uint64_t for_ms; /* detached: limit without a reader; 0: none */
};

/* errors  ERR_INVALID_ARGUMENT */
MUST_CHECK bool leaving_parse(struct str text, struct leaving *ret, struct err *e);

/* Append it as leaving_parse() reads it. */
void leaving_append(struct leaving leaving, struct buf *out);

#endif
