/* id: the one grammar for ids from callers: users, workspaces and sessions.
 *
 * An id is 1 to 256 bytes of valid UTF-8 without control characters (C0, DEL, C1). Ids appear
 * in logs, tokens and paths, where an invisible or truncated one would name someone else.
 *
 * Memory   none.
 * Threads  any.
 * Source   checks.md A4 and I3.
 */
#ifndef WEIR_BASE_ID_H
#define WEIR_BASE_ID_H

#include "base/err.h"

#define ID_MAX_BYTES 256

bool id_ok(struct str id);

/* The same as an error. `name` says which id it is.
 * errors  ERR_INVALID_ARGUMENT */
MUST_CHECK bool id_check(const char *name, struct str id, struct err *e);

#endif
