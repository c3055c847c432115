/* acks: fewer acknowledgements for an answer that comes in many small pieces.
 *
 * The kernel acknowledges each small piece as soon as it is read. A model's answer has a piece for
 * each token, and sending its acknowledgement costs about as much as reading it. So when pieces
 * come quickly one after the other, the kernel is told to let acknowledgements wait: it then sends
 * one for two pieces, or 40 ms after the first. It returns to the old way when those 40 ms have
 * passed; when pieces come quickly again, it is told once more.
 *
 * A server that has left Nagle's algorithm on (no TCP_NODELAY) sends its next small piece only when
 * the last one is acknowledged, so it waits these 40 ms. That shows in a gap right after the
 * kernel was told. After two such gaps in a row the connection is left alone.
 *
 * Memory   a value of the connection's owner; zero is a new one.
 * Threads  none.
 * Source   tcp(7), TCP_QUICKACK; RFC 1122 4.2.3.2.
 */
#ifndef WEIR_CLIENT_ACKS_H
#define WEIR_CLIENT_ACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Small pieces after which the kernel is told. */
#define ACKS_RUN 16

/* So many more without a gap show that the server does not wait for acknowledgements. */
#define ACKS_PROOF 4

/* A gap: the kernel's own 40 ms have nearly passed. */
#define ACKS_GAP_MS 35

/* A larger piece is not a token's. */
#define ACKS_PIECE_BYTES 4096

#define ACKS_FAILURES_MAX 2

struct acks {
    uint64_t read_ms;  /* when the last piece was read */
    uint16_t run;      /* small pieces without a gap, up to ACKS_RUN + ACKS_PROOF */
    uint16_t failures; /* gaps right after the kernel was told, in a row */
};

/* A piece of `len` bytes was read. True: acknowledgements may wait from now on. */
bool acks_may_wait(struct acks *acks, size_t len, uint64_t now_ms);

/* The same, and tell the kernel. */
void acks_after_read(struct acks *acks, int fd, size_t len, uint64_t now_ms);

#endif
