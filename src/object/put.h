/* put: write an object whose bytes come piece by piece.
 *
 *     filling ─▶ sending ─────────────────────────▶ over      it fits into one part
 *        └─▶ creating ─▶ part ⇄ filling
 *                          └─▶ completing ─▶ over             in several parts
 *                                   └─▶ checking ─▶ over      was it completed?
 *     a failure after creating: ─▶ aborting ─▶ over
 *
 * At most one part of PUT_PART_BYTES is in memory. The object exists, whole, once on_end has
 * come without an error; an object that was there before stays until then.
 *
 * Memory   the bytes are copied.
 * Threads  the loop's.
 * Source   Amazon S3 User Guide, "Uploading and copying objects using multipart upload".
 */
#ifndef WEIR_OBJECT_PUT_H
#define WEIR_OBJECT_PUT_H

#include "base/states.h"
#include "base/units.h"
#include "object/ask.h"

#define PUT_PART_BYTES (8 * MIB) /* storage wants 5 MiB at least of all but the last */
#define PUT_PARTS_MAX 1000

enum object_put_state {
    PUT_FILLING,
    PUT_SENDING,
    PUT_CREATING,
    PUT_PART,
    PUT_COMPLETING,
    PUT_CHECKING,
    PUT_ABORTING,
    PUT_OVER,
    PUT_STATE_COUNT
};

extern const struct state object_put_states[PUT_STATE_COUNT];

struct object_put;

struct object_put_events {
    void (*on_room)(void *ctx); /* object_put_write() takes bytes again */
    /* Called once, and the put is gone. etag: of what was written. errors as ask.h */
    void (*on_end)(struct str etag, const struct err *failed, void *ctx);
};

struct object_put *object_put_start(struct bucket *bucket, struct loop *loop, struct str key,
                                    struct str content_type,
                                    const struct object_put_events *events, void *ctx);

/* How many of the bytes were taken. Fewer than all: wait for on_room. */
MUST_CHECK size_t object_put_write(struct object_put *put, struct str bytes);

/* No more bytes follow; all were taken. on_end comes later. */
void object_put_end(struct object_put *put);

/* Nothing is written; parts that were sent may be left (remove.h). May be called in on_room. */
void object_put_cancel(struct object_put *put);

/* The tag of an object that was written in parts, as most storages make it: false when the tags
 * of the parts are of another kind. `tags` are `count` times 32 hexadecimal digits. */
MUST_CHECK bool object_put_tag(struct str tags, size_t count, struct buf *out);

#endif
