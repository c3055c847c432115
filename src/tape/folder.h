/* folder: recordings as files. Private to tape/.
 *
 * Threads  any; blocks.
 */
#ifndef WEIR_TAPE_FOLDER_H
#define WEIR_TAPE_FOLDER_H

#include "base/err.h"

struct folder_name {
    struct str kind, who; /* what a person looks for */
    struct str hashed;    /* what makes it another one */
    unsigned long serial; /* no two that are being written have the same */
};

/* For its owner alone, if there is none. */
MUST_CHECK bool folder_make(struct str folder, struct err *e);

/* A new file, complete or absent. */
MUST_CHECK bool folder_write(const char *folder, const struct folder_name *name,
                             struct str bytes, struct err *e);

typedef bool folder_file_fn(struct str name, struct str text, void *ctx, struct err *e);

/* Each recording, in the order of their names, until one is refused. */
MUST_CHECK bool folder_read(const char *folder, size_t file_max_bytes, folder_file_fn *on_file,
                            void *ctx, struct err *e);

#endif
