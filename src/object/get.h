/* get: read an object, or a range of it, at the pace of its reader.
 *
 *     start ─▶ on_head ─▶ on_body* ─▶ on_end
 *
 * While the reader is paused nothing is taken from the storage. A connection that breaks in the
 * middle is made again for the rest, of the same version of the object: a reader never gets bytes
 * of two versions, and never fewer than on_head has announced without an error.
 *
 * Memory   the key is copied; what callbacks get is borrowed.
 * Threads  the loop's.
 */
#ifndef WEIR_OBJECT_GET_H
#define WEIR_OBJECT_GET_H

#include "object/ask.h"

struct object_get;

struct object_range {
    uint64_t from;
    uint64_t count;  /* at most so many bytes; UINT64_MAX: to the end */
    struct str etag; /* of the version wanted; empty: whichever is there */
};

struct object_found {
    uint64_t size;  /* of the whole object */
    uint64_t count; /* bytes that follow */
    struct str content_type, etag;
};

/* None runs before object_get_start() has returned. The get may be cancelled in the first two. */
struct object_reader {
    void (*on_head)(const struct object_found *found, void *ctx);
    void (*on_body)(struct lent bytes, void *ctx); /* never empty */
    /* Called once, and the get is gone. errors as ask.h; ERR_ABORTED another version is there;
     * ERR_DATA_LOSS the answer contradicts itself */
    void (*on_end)(const struct err *failed, void *ctx);
};

struct object_get *object_get_start(struct bucket *bucket, struct loop *loop, struct str key,
                                    const struct object_range *range,
                                    const struct object_reader *reader, void *ctx);
void object_get_cancel(struct object_get *get);

/* Read "bytes 0-9/44" (size 44); "bytes * /44" without the blank has no bytes. */
MUST_CHECK bool object_range_read(struct str text, uint64_t *ret_from, uint64_t *ret_count,
                                  uint64_t *ret_size);

#endif
