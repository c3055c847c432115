/* file: a small file, whole.
 *
 * For what is read once, at start: settings, scripts, keys. Blocks; never call it from a loop
 * that serves somebody.
 *
 * Threads  any.
 */
#ifndef WEIR_BASE_FILE_H
#define WEIR_BASE_FILE_H

#include "base/buf.h"
#include "base/err.h"

/* Append the bytes of the file at `path` to `out`. The error names the file and the fix.
 * errors  ERR_NOT_FOUND, ERR_PERMISSION_DENIED, ERR_TOO_LARGE (past the limit of `out`),
 *         ERR_INVALID_ARGUMENT (a folder), ERR_UNAVAILABLE (anything else) */
MUST_CHECK bool file_read(struct str path, struct buf *out, struct err *e);

#endif
