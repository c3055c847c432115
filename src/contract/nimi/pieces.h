/* pieces: gather a model's text into pieces worth sending.
 *
 * Text is held back until there are 32 bytes. It is cut between two characters that are not
 * white space, because a client that trims each delta would lose the space. If there is no such
 * place within 4 KiB, it is cut anyway. The rest is sent at the end.
 *
 *     put("Hello "), put("wor"), put("ld, how are you today")
 *         ─▶ "Hello world, how are you today"
 *
 * Memory   owns the text it holds back.
 * Threads  none.
 * Source   contracts/nimi.md 3.1 rule 006, 6.1.
 */
#ifndef WEIR_CONTRACT_NIMI_PIECES_H
#define WEIR_CONTRACT_NIMI_PIECES_H

#include "base/buf.h"

#define PIECE_MIN_BYTES 32
#define PIECE_MAX_BYTES (4 * KIB)

struct pieces {
    struct buf held;
};

void pieces_init(struct pieces *pieces);
void pieces_done(struct pieces *pieces);

/* Add valid UTF-8. */
void pieces_put(struct pieces *pieces, struct str text);

/* The next piece to send, a view of the first bytes of `held`; empty: none is ready. The caller
 * sends it and drops it with pieces_sent(). */
struct str pieces_ready(const struct pieces *pieces);

/* Everything still held, to be sent at the end. */
struct str pieces_rest(const struct pieces *pieces);

void pieces_sent(struct pieces *pieces, size_t len);

#endif
