/* root: access to files below one directory, and nowhere else.
 *
 * The operator chooses the directory; each workspace has its own directory in it:
 *
 *     <root>/workspaces/<workspace>/files/<key>
 *
 * The kernel refuses every way out: each name is opened beneath the directory before it, and no
 * link of any kind is followed, not even one created between two checks. Only regular files are
 * read or replaced. A file is written under a temporary name and renamed when it is complete,
 * so a partial file is never visible.
 *
 * Memory   root_open() makes it, root_free() ends it. It holds one descriptor.
 * Threads  any; everything but root_free() blocks: call from a job, never from a loop.
 * Source   openat2(2), RESOLVE_BENEATH; RFC 3986 2.1 for the names of workspaces.
 */
#ifndef WEIR_TOOL_ROOT_H
#define WEIR_TOOL_ROOT_H

#include "base/buf.h"
#include "base/err.h"

#include <stdatomic.h>

struct root;

#define ROOT_FILE_MAX_BYTES (25 * MIB)

/* errors  ERR_NOT_FOUND, ERR_PERMISSION_DENIED, ERR_INVALID_ARGUMENT for the directory itself;
 *         ERR_UNIMPLEMENTED this kernel does not support openat2 */
MUST_CHECK bool root_open(struct str folder, struct root **ret, struct err *e);
void root_free(struct root *root); /* accepts NULL */

/* Append the path below the root, "workspaces/<workspace>/files/<key>". The workspace is
 * percent-encoded except for letters, digits, '.', '_' and '-'. Empty parts, "." and ".." are
 * removed from the key.
 * errors  ERR_INVALID_ARGUMENT the rest names no file, is too long, or has control bytes */
MUST_CHECK bool root_path(struct str workspace, struct str key, struct buf *out, struct err *e);

/* Append an id as one file name that is unique to it, encoded like the workspace; an empty one has a
 * name too.
 * errors  ERR_INVALID_ARGUMENT it is too long */
MUST_CHECK bool root_append_name(struct str id, struct buf *out, struct err *e);

/* Append the beginning of the file at `path` (from root_path()) to `out`, up to the limit of
 * `out`. *ret_size is the size of the file.
 * errors  ERR_NOT_FOUND; ERR_PERMISSION_DENIED also for links; ERR_INVALID_ARGUMENT not a
 *         regular file; ERR_TOO_LARGE; ERR_UNAVAILABLE */
MUST_CHECK bool root_read(const struct root *root, struct str path, struct buf *out,
                          uint64_t *ret_size, struct err *e);

/* Create or replace the file at `path` (from root_path()), with its parent directories. If
 * `*stop` becomes true before the file is complete, it is not changed.
 * errors  as root_read(); ERR_RESOURCE_EXHAUSTED the disk is full; ERR_CANCELLED */
MUST_CHECK bool root_write(struct root *root, struct str path, struct str bytes,
                           const atomic_bool *stop, struct err *e);

#endif
