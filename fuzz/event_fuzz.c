/* Whatever decodes must read the same after it was written again, and its turns must end. */
#include "wire/event.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

static void write_again(const struct event *event, size_t limit) {
    struct buf once, twice;
    buf_init(&once, limit);
    buf_init(&twice, limit);
    assert(event_encode(event, &once));
    size_t body;
    assert(once.len == event_encoded_len(event, &body));

    struct str bytes = buf_str(&once);
    struct event again = {.seq = event->seq};
    struct err e;
    assert(event_decode(&bytes, &again, &e));
    assert(bytes.len == 0 && again.kind == event->kind && again.at_ms == event->at_ms);
    assert(str_equal(again.agent, event->agent));
    assert(event_encode(&again, &twice));
    assert(str_equal(buf_str(&once), buf_str(&twice)));
    buf_done(&once);
    buf_done(&twice);
}

/* Both ways to take texts agree. */
static void take_texts(struct str bytes) {
    struct str one = bytes, other = bytes, agents[2], texts[2];
    while (event_take_text(&one, &agents[0], &texts[0])) {
        assert(event_next_text(&other, &agents[1], &texts[1]));
        assert(one.at == other.at && one.len == other.len);
        assert(str_equal(agents[0], agents[1]) && str_equal(texts[0], texts[1]));
    }
    assert(!event_next_text(&other, &agents[1], &texts[1]) && one.len == other.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str rest = str_of(data, size);
    take_texts(rest);
    struct event event = {0};
    struct err e;
    size_t before = rest.len;
    while (rest.len && event_decode(&rest, &event, &e)) {
        assert(rest.len < before);
        before = rest.len;
        write_again(&event, size + 128);
        if (event.kind != EVENT_DONE) continue;
        struct str turns = event.done.turns;
        struct event_turn turn;
        while (event_turn_next(&turns, &turn)) assert(turn.text.len <= size);
    }
    return 0;
}
