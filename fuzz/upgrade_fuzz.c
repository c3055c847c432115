/* The bytes are the head of an answer to the opening handshake. Only an answer with our
 * Sec-WebSocket-Accept in it may be taken. */
#include "client/upgrade.h"

#include "wire/websocket.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct str key = STR_INIT("dGhlIHNhbXBsZSBub25jZQ==");
    struct str head = str_of(data, size);
    unsigned status = upgrade_status(head);
    char accept[WEBSOCKET_ACCEPT_BYTES];
    struct err e;
    assert(status == 0 || (status >= 100 && status <= 599));
    websocket_accept(key, accept);
    if (upgrade_check(head, key, &e))
        assert(status == 101 && str_find(head, str_of(accept, sizeof(accept))) < head.len);
    return 0;
}
