/* Any bytes as a server's response, cut and paused as the first byte says: what is read is the
 * same as without cuts and pauses. */
#include "client/http1_response.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct heard {
    struct buf text;
    unsigned pauses;
    bool stopped;
};

static enum http1_go go(struct heard *heard) {
    assert(!heard->stopped);
    heard->pauses = heard->pauses * 31 / 2;
    return heard->pauses & 1 ? HTTP1_PAUSE : HTTP1_GO;
}

static enum http1_go on_line(struct str line, void *ctx) {
    struct heard *heard = ctx;
    buf_append(&heard->text, line);
    buf_append(&heard->text, STR("|"));
    return go(heard);
}

static enum http1_go on_body(struct str bytes, void *ctx) {
    struct heard *heard = ctx;
    assert(bytes.len);
    buf_append(&heard->text, bytes);
    return go(heard);
}

static const struct http1_events events = {on_line, on_body};

static enum http1_verdict hear(struct str bytes, size_t piece, unsigned pauses,
                               struct buf *ret) {
    struct heard heard = {.pauses = pauses};
    struct http1_response response;
    enum http1_verdict verdict = HTTP1_MORE;
    buf_init(&heard.text, MIB);
    http1_response_init(&response, false, &events, &heard);
    while (bytes.len && (verdict == HTTP1_MORE || verdict == HTTP1_PAUSED)) {
        size_t used;
        verdict = http1_response_feed(&response, str_head(bytes, piece), &used);
        assert(used <= bytes.len);
        bytes = str_skip(bytes, used);
    }
    for (size_t used; verdict == HTTP1_PAUSED;)
        verdict = http1_response_feed(&response, STR_EMPTY, &used);
    if (verdict == HTTP1_MORE) verdict = http1_response_finish(&response);
    http1_response_done(&response);
    *ret = heard.text;
    return verdict;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    struct str bytes = str_of(data + 1, size - 1);
    struct buf whole, pieces;
    enum http1_verdict first = hear(bytes, bytes.len, 0, &whole);
    enum http1_verdict second = hear(bytes, 1 + data[0] % 61, data[0], &pieces);
    assert((first == HTTP1_END) == (second == HTTP1_END));
    if (first == HTTP1_END) assert(str_equal(buf_str(&whole), buf_str(&pieces)));
    buf_done(&whole);
    buf_done(&pieces);
    return 0;
}
