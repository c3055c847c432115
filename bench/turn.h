/* turn: what the driver asks for, and whether the answer is right to the last byte.
 *
 * The turn that every server under test gives: TURN_CHUNKS chunks of TURN_TEXT_BYTES bytes
 * from the agent "manager", one usage event, one done event whose only turn holds the whole
 * text. A chunk begins with its number in eight digits. In an unpaced turn the other bytes are
 * fixed too and each is compared; in a paced turn ("paced N": N chunks, one each
 * TURN_PACE_US) a server may put a time stamp there, and the text of the done event must be
 * what the chunks said.
 *
 * Memory   a struct turn is a plain value. Texts made here go to the caller's buffer.
 * Threads  none.
 * Source   proto/agentruntime/v1/runtime.proto.
 */
#ifndef WEIR_BENCH_TURN_H
#define WEIR_BENCH_TURN_H

#include "base/buf.h"
#include "base/err.h"

#define TURN_CHUNKS 64
#define TURN_EVENTS (TURN_CHUNKS + 2)
#define TURN_TEXT_BYTES 64
#define TURN_PACE_US 20000

/* Chunk n says "<n, eight digits>" and then this. */
#define TURN_TAIL " the water goes on over the weir, to the mill, to sea..."

enum turn_event { TURN_CHUNK, TURN_USAGE, TURN_DONE };

struct turn {
    unsigned expected; /* chunks in this turn */
    unsigned chunks;   /* seen so far */
    bool paced, usage, done;
    uint64_t hash; /* of the texts seen */
};

/* Who asks: makes the request and the token agree. */
struct turn_asker {
    char user[48], workspace[48], session[48];
};

/* Begin to expect an answer; `paced_chunks` is 0 for an unpaced turn. */
void turn_begin(struct turn *turn, unsigned paced_chunks);

/* Check one ConverseEvent.
 * errors  ERR_DATA_LOSS anything missing, changed, doubled or out of order */
MUST_CHECK bool turn_take(struct turn *turn, struct str message, enum turn_event *ret,
                          struct err *e);

/* Append a ConverseRequest. */
void turn_request(const struct turn_asker *asker, unsigned paced_chunks, struct buf *out);

/* Append "Bearer <token>": base64url(user:workspace:now) "." hex(HMAC-SHA256(key, that)). */
void turn_bearer(const struct turn_asker *asker, struct str key, struct buf *out);

#endif
