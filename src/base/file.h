/* file: read or write a small file as a whole.
 *
 * For files that are read or written once at start: settings, scripts, keys. It blocks: never call it
 * from a loop that serves connections.
 *
 * Threads  any.
 */
#ifndef WEIR_BASE_FILE_H
#define WEIR_BASE_FILE_H

#include "base/buf.h"
#include "base/err.h"

/* Append the bytes of the file at `path` to `out`. The error names the file and the fix.
 * errors  ERR_NOT_FOUND, ERR_PERMISSION_DENIED, ERR_TOO_LARGE (past the limit of `out`),
 *         ERR_INVALID_ARGUMENT (a directory), ERR_UNAVAILABLE (anything else) */
MUST_CHECK bool file_read(struct str path, struct buf *out, struct err *e);

/* Put `text` in the place of the file at `path`: a reader sees the old one or the new one, whole.
 * mode    of the new file, 0600
 * errors  ERR_UNAVAILABLE; what was there stays */
MUST_CHECK bool file_replace(struct str path, unsigned mode, struct str text, struct err *e);

#endif
