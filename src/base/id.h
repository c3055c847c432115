/* id: the one grammar of ids that callers give: of users, workspaces and sessions.
 *
 * 1 to 256 bytes of valid UTF-8 without control characters (C0, DEL, C1): they stand in logs,
 * in tokens and in paths, and one that nobody can see or that is cut names somebody else.
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

/* ERR_INVALID_ARGUMENT: `name` says which id it is. */
MUST_CHECK bool id_check(const char *name, struct str id, struct err *e);

#endif
