/* path: what a path means to an agent, however it is spelled.
 *
 * Frameworks differ in what they take for the same path: all decode percent signs once, most
 * resolve "." and "..", some join slashes, ignore one at the end, the case, or what follows a
 * semicolon. So the plain form has all of that done to it: two spellings that some agent takes for
 * one path have one plain form.
 *
 * Threads  none.
 */
#ifndef WEIR_SIDECAR_PATH_H
#define WEIR_SIDECAR_PATH_H

#include "base/buf.h"

/* Append the plain form, at most as long as `path` and never empty; `out` has the room. */
void path_plain(struct str path, struct buf *out);

#endif
