/* HTTP/1: any bytes, in any pieces, to a connection without a socket. The first byte of the
 * input says how the rest is cut; whatever comes, each exchange that began is closed once. */
#include "../test/server/fake.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    struct fake fake;
    struct echo echo = {0};
    struct str rest = str_of((const char *)data + 1, size - 1);
    size_t piece = data[0];
    fake_open(&fake, echo_start, &echo);
    while (rest.len && !fake_is_over(&fake)) {
        /* Pieces of changing lengths; 0 means all at once. */
        size_t len = data[0] ? 1 + piece % 61 : rest.len;
        piece = piece * 31 + 7;
        fake_receive(&fake, str_head(rest, len));
        rest = str_skip(rest, len);
        if (piece % 5 == 0) loop_advance(fake.loop, piece % 4000);
    }
    fake_peer_ends(&fake);
    fake_shut(&fake);
    assert(echo.begun == echo.closed);
    return 0;
}
