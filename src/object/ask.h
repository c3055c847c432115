/* ask: one signed request to a bucket, repeated while that is safe and may help.
 *
 *     start ─▶ out ─▶ (waiting ─▶ out)* ─▶ on_end
 *
 * A request is signed again for each attempt. It is repeated after 5xx, 429 and a broken
 * connection, with a pause that grows and is random, or the one that the server asked for. One
 * that must not arrive twice is repeated only where it provably was not carried out. Once a byte
 * of the body was reported there is no repetition: get.h goes on from there.
 *
 * Memory   the request's texts are copied, except `body`, which the caller keeps until the end.
 * Threads  the loop's.
 * Source   Amazon S3 API Reference, "Error best practices".
 */
#ifndef WEIR_OBJECT_ASK_H
#define WEIR_OBJECT_ASK_H

#include "base/lent.h"
#include "object/bucket.h"

#define OBJECT_ATTEMPTS_MAX 5
#define OBJECT_PAUSE_MAX_MS 20000 /* a server that asks for more is not asked again */
#define OBJECT_STALL_MS 30000
#define OBJECT_KEY_MAX_BYTES 1024
#define OBJECT_HEADERS_MAX 8 /* of one request, beside host, date and sum */

struct object_ask;

struct object_request {
    struct str method, key;         /* an empty key: the bucket */
    const struct sigv4_pair *query; /* not encoded */
    size_t query_count;
    const struct sigv4_pair *headers; /* in lower case */
    size_t header_count;
    struct str body;
    size_t answer_max_bytes; /* of a body that is collected */
    bool once;               /* it must not arrive twice */
};

/* Of a 2xx response. Borrowed during the callback. */
struct object_answer {
    unsigned status;
    struct str body; /* what was collected */
    struct str content_type, etag, range;
};

/* None runs before object_ask_start() has returned. The ask may be cancelled in the first two. */
struct object_sink {
    /* Both NULL: the body is collected. */
    void (*on_head)(const struct object_answer *answer, void *ctx);
    void (*on_body)(struct lent bytes, void *ctx);
    /* Called once, and the ask is gone. `failed` as in fault.h; also ERR_UNAVAILABLE and
     * ERR_DEADLINE_EXCEEDED of the connection, and ERR_TOO_LARGE. ambiguous: an attempt may have been carried out. */
    void (*on_end)(const struct object_answer *answer, const struct err *failed, bool ambiguous,
                   void *ctx);
};

struct object_ask *object_ask_start(struct bucket *bucket, struct loop *loop,
                                    const struct object_request *request,
                                    const struct object_sink *sink, void *ctx);
void object_ask_cancel(struct object_ask *ask);

/* A random pause before attempt `number` (from 1): up to twice as long each time. */
uint64_t object_pause_ms(unsigned number);

#endif
