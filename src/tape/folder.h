/* folder: recordings as files. Private to tape/.
 *
 * Threads  any; blocks.
 */
#ifndef WEIR_TAPE_FOLDER_H
#define WEIR_TAPE_FOLDER_H

#include "base/err.h"

struct folder_name {
    struct str kind, who; /* for people */
    struct str hashed;    /* hashed to make the name distinct */
    unsigned long serial; /* unique among the files being written */
};

/* Create the directory if there is none; only its owner has access. */
MUST_CHECK bool folder_make(struct str folder, struct err *e);

/* Write a new file; after a failure it is absent. */
MUST_CHECK bool folder_write(const char *folder, const struct folder_name *name,
                             struct str bytes, struct err *e);

typedef bool folder_file_fn(struct str name, struct str text, void *ctx, struct err *e);

/* Call on_file for each recording, in the order of their names, until it fails. */
MUST_CHECK bool folder_read(const char *folder, size_t file_max_bytes, folder_file_fn *on_file,
                            void *ctx, struct err *e);

#endif
