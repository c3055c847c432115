/* create: make the folder of a store, and a new file in it.
 *
 * Memory   none.
 * Threads  the store's.
 */
#ifndef WEIR_STORE_CREATE_H
#define WEIR_STORE_CREATE_H

#include "store/database.h"

/* The folder with those above it, of mode 0700. */
MUST_CHECK bool create_folder(const char *folder, struct err *e);

/* A database with empty tables under the name `path`, in `folder`. Its steps are reported as
 * `like` reports them. */
MUST_CHECK bool create_file(struct database *like, const char *folder, const char *path,
                            struct err *e);

#endif
