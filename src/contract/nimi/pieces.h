/* pieces: a model's words, gathered into pieces worth sending.
 *
 * Text is held back until 32 bytes are there. It is cut between characters, and where neither
 * side is white space, since a client that trims each delta would eat the space; where no such
 * place comes within 4 KiB it is cut anyway. What is left goes out with the end.
 *
 *     put("Hello "), put("wor"), put("ld, how are you today") ─▶
 *         "Hello world, how are you today"
 *
 * Memory   owns what is held back.
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

/* The next piece that may go, or empty: how many bytes of `held` it is. The caller sends them
 * and drops them with pieces_sent(). */
struct str pieces_ready(const struct pieces *pieces);

/* All that is held, at the end. */
struct str pieces_rest(const struct pieces *pieces);

void pieces_sent(struct pieces *pieces, size_t len);

#endif
