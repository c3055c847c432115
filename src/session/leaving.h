/* leaving: what becomes of a run when its caller leaves.
 *
 *     cancel            it ends, at once
 *     detach            it goes on, and nobody listens
 *     detach-for=30s    it goes on; when nobody has read it for that long it ends
 *
 * Each listener has a setting, and a request over HTTP may say it for itself.
 *
 * Memory   a plain value.
 * Threads  none.
 * Source   conventions.md b10: a contract's default is kept, a caller may choose.
 */
#ifndef WEIR_SESSION_LEAVING_H
#define WEIR_SESSION_LEAVING_H

#include "base/buf.h"
#include "base/err.h"

enum leaving_how {
    LEAVING_CANCELS,
    LEAVING_DETACHES,
    LEAVING_NOBODY, /* no leaving at all: somebody has it cancelled. No text says that */
};

struct leaving {
    enum leaving_how how;
    uint64_t for_ms; /* detached: so long without a reader; 0: for ever */
};

/* errors  ERR_INVALID_ARGUMENT */
MUST_CHECK bool leaving_parse(struct str text, struct leaving *ret, struct err *e);

/* As leaving_parse() reads it. */
void leaving_append(struct leaving leaving, struct buf *out);

#endif
