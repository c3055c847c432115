/* uploads: the unfinished uploads under a prefix, the first page of them.
 *
 * Memory   arguments are copied; a page is borrowed during the callback.
 * Threads  the loop's.
 * Source   Amazon S3 API Reference, ListMultipartUploads.
 */
#ifndef WEIR_OBJECT_UPLOADS_H
#define WEIR_OBJECT_UPLOADS_H

#include "base/arena.h"
#include "object/ask.h"

#define OBJECT_PAGE_UPLOADS 250
#define OBJECT_PAGE_MAX_BYTES (2 * MIB)

struct object_upload {
    struct str key, id;
};

struct object_uploads_page {
    const struct object_upload *uploads;
    size_t count;
};

typedef void object_uploads_fn(const struct object_uploads_page *page, const struct err *failed,
                               void *ctx);

/* listed() is called once, later. A storage lists in the order of the keys, so those of the key that
 * equals the prefix come first. */
struct object_uploads;
struct object_uploads *object_uploads_start(struct bucket *bucket, struct loop *loop,
                                            struct str prefix, object_uploads_fn *listed,
                                            void *ctx);
void object_uploads_cancel(struct object_uploads *uploads);

/* The document of such an answer; what is kept goes to the arena.
 * errors  ERR_MALFORMED */
MUST_CHECK bool object_uploads_read(struct str text, struct arena *arena,
                                    struct object_uploads_page *ret, struct err *e);

#endif
