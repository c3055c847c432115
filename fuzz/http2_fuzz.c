/* HTTP/2: frames of any kind behind a good preface, in any pieces, to a connection without a
 * socket whose peer reads now and then. The first two bytes say how the rest is cut and how
 * much the peer reads; whatever comes, each exchange that began is closed once. */
#include "../test/server/fake.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    struct fake fake;
    struct echo echo = {0};
    struct str rest = str_of((const char *)data + 2, size - 2);
    size_t piece = data[0];
    fake_open(&fake, echo_start, &echo);
    fake_receive(&fake, STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"));
    if (data[1]) fake.window = data[1];
    while (rest.len && !fake_is_over(&fake)) {
        size_t len = data[0] ? 1 + piece % 61 : rest.len;
        piece = piece * 31 + 7;
        fake_receive(&fake, str_head(rest, len));
        rest = str_skip(rest, len);
        if (data[1] && piece % 3 == 0) fake_allow(&fake, piece % 509);
        if (piece % 5 == 0) loop_advance(fake.loop, piece % 4000);
    }
    fake_peer_ends(&fake);
    fake_shut(&fake);
    assert(echo.begun == echo.closed);
    return 0;
}
