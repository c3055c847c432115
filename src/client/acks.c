#include "client/acks.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

static void acks_break(struct acks *acks, bool gap) {
    bool told = acks->run >= ACKS_RUN && acks->run < ACKS_RUN + ACKS_PROOF;
    if (gap && told) acks->failures++;
    acks->run = 0;
}

bool acks_may_wait(struct acks *acks, size_t len, uint64_t now_ms) {
    bool gap = now_ms - acks->read_ms >= ACKS_GAP_MS;
    acks->read_ms = now_ms;
    if (acks->failures >= ACKS_FAILURES_MAX) return false;
    if (gap || len > ACKS_PIECE_BYTES) {
        acks_break(acks, gap);
        return false;
    }
    if (acks->run == ACKS_RUN + ACKS_PROOF) return false;
    acks->run++;
    if (acks->run == ACKS_RUN + ACKS_PROOF) acks->failures = 0;
    return acks->run == ACKS_RUN;
}

/* Where the kernel refuses, it goes on as before. */
void acks_after_read(struct acks *acks, int fd, size_t len, uint64_t now_ms) {
    const int at_once = 0;
    if (acks_may_wait(acks, len, now_ms))
        (void)setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &at_once, sizeof(at_once));
}
