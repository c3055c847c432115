/* root: files below one folder, and nowhere else.
 *
 * The folder is the operator's; each workspace has a folder of its own in it:
 *
 *     <root>/workspaces/<workspace>/files/<key>
 *
 * The kernel itself refuses every road out: each name is opened beneath the folder before it,
 * and no link of any kind is followed, not even one that somebody puts there between two looks.
 * Only regular files are read or replaced. A file is written beside its place and moved there
 * when it is whole, so nobody ever sees half of it.
 *
 * Memory   counted: root_ref(), root_unref(); it holds one descriptor.
 * Threads  any; everything but ref and unref blocks: call from a job, never from a loop.
 * Source   openat2(2), RESOLVE_BENEATH; RFC 3986 2.1 for the names of workspaces.
 */
#ifndef WEIR_TOOL_ROOT_H
#define WEIR_TOOL_ROOT_H

#include "base/buf.h"
#include "base/err.h"

#include <stdatomic.h>

struct root;

#define ROOT_FILE_MAX_BYTES (25 * MIB)

/* errors  ERR_NOT_FOUND, ERR_PERMISSION_DENIED, ERR_INVALID_ARGUMENT for the folder itself;
 *         ERR_UNIMPLEMENTED this kernel cannot open beneath a folder */
MUST_CHECK bool root_open(struct str folder, struct root **ret, struct err *e);
struct root *root_ref(struct root *root);
void root_unref(struct root *root); /* accepts NULL */

/* Append "workspaces/<workspace>/files/<key>" as it stands below the root: the workspace
 * percent-encoded but for letters, digits, '.', '_' and '-', the key without empty parts,
 * "." and "..".
 * errors  ERR_INVALID_ARGUMENT what remains names no file, is too long, or holds control
 *         bytes */
MUST_CHECK bool root_path(struct str workspace, struct str key, struct buf *out, struct err *e);

/* Append the first bytes of the file at `path` (of root_path()) to `out`, as many as its limit
 * allows; *ret_size is how many there are.
 * errors  ERR_NOT_FOUND; ERR_PERMISSION_DENIED also for links; ERR_INVALID_ARGUMENT not a
 *         regular file; ERR_TOO_LARGE; ERR_UNAVAILABLE */
MUST_CHECK bool root_read(const struct root *root, struct str path, struct buf *out,
                          uint64_t *ret_size, struct err *e);

/* Make the file at `path` (of root_path()), and the folders on the way, or replace it. When
 * `*stop` becomes true before the whole file stands there, nothing changes.
 * errors  as root_read(); ERR_RESOURCE_EXHAUSTED the disk is full; ERR_CANCELLED */
MUST_CHECK bool root_write(struct root *root, struct str path, struct str bytes,
                           const atomic_bool *stop, struct err *e);

#endif
