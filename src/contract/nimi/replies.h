/* replies: what a write was answered, for whoever asks it again.
 *
 * A unary write with an idempotency key is made once: the same request under the same key is
 * answered with the stored reply, another request under that key is a conflict. Only successful
 * replies are kept, for a day, 10,000 of them and 64 MiB; the one that was asked for longest
 * ago makes room. They are in memory only.
 *
 * Memory   owns copies.
 * Threads  any; one lock.
 * Source   contracts/nimi.md 3.2 K-DAEMON-006.
 */
#ifndef WEIR_CONTRACT_NIMI_REPLIES_H
#define WEIR_CONTRACT_NIMI_REPLIES_H

#include "base/buf.h"

#define REPLIES_KEPT_MS (24ull * 60 * 60 * 1000)
#define REPLIES_MAX 10000
#define REPLIES_MAX_BYTES (64 * MIB)
#define REPLIES_DIGEST_BYTES 32

struct replies;

struct replies *replies_new(size_t count_max, size_t bytes_max);
void replies_free(struct replies *replies); /* NULL is fine */

enum reply_found {
    REPLY_NEW,      /* nobody has asked that */
    REPLY_STORED,   /* the reply was appended to `out` */
    REPLY_CONFLICT, /* the key belongs to another request */
};

/* digest  of the request, REPLIES_DIGEST_BYTES */
enum reply_found replies_find(struct replies *replies, struct str key, const uint8_t *digest,
                              uint64_t now_ms, struct buf *out);

/* Keep a reply; one larger than everything may be is not kept. */
void replies_keep(struct replies *replies, struct str key, const uint8_t *digest,
                  uint64_t now_ms, struct str reply);

size_t replies_count(struct replies *replies);

#endif
