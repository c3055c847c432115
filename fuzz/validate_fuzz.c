/* Noise from a target: as the body of a stream, and as what people are shown. The first byte is
 * the limit of what is shown. */
#include "base/utf8.h"
#include "validate/judge.h"
#include "validate/sse_body.h"

#include <assert.h>

static void read_body(struct str bytes) {
    struct sse_body body;
    struct err e;
    if (!sse_body_read(bytes, &body, &e)) return;
    for (size_t i = 0; i < body.count; i++) {
        assert(utf8_valid(body.events[i].type) && utf8_valid(body.events[i].data));
        assert(body.events[i].type.len > 0);
    }
    assert(!body.odd_line.at || body.odd_line.len > 0);
    sse_body_done(&body);
}

static void show(struct str bytes, size_t limit) {
    const struct str secrets[] = {STR("token-of-the-agent")};
    struct buf out;
    buf_init(&out, limit);
    evidence_append(&out, bytes, secrets, ARRAY_LEN(secrets));
    struct str shown = buf_str(&out);
    assert(out.len <= limit);
    assert(str_find(shown, secrets[0]) == shown.len);
    for (size_t i = 0; i < shown.len; i++) {
        unsigned char byte = (unsigned char)shown.at[i];
        assert(byte >= 0x20 || byte == '\n' || byte == '\t');
        assert(byte != 0x7f);
    }
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    struct str bytes = str_of(data + 1, size - 1);
    read_body(bytes);
    show(bytes, (size_t)data[0] + 16);
    return 0;
}
