/* The bytes are one message of a live model's server. Whatever is read stays inside its buffer and
 * is the same when it is read again. */
#include "provider/live_event.h"

#include <assert.h>

static bool is_inside(struct str part, const struct buf *room) {
    return part.len == 0 || (part.at >= room->at && part.at + part.len <= room->at + room->len);
}

static bool read_once(struct str text, struct buf *room, struct live_event *event) {
    struct err e;
    return live_event_read(text, room, event, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct live_event event, again;
    struct buf room, other;
    struct str text = str_of(data, size);
    buf_init(&room, LIVE_EVENT_ROOM * size + 1);
    buf_init(&other, LIVE_EVENT_ROOM * size + 1);
    if (read_once(text, &room, &event)) {
        assert(is_inside(event.response, &room) && is_inside(event.text, &room) &&
               is_inside(event.call_id, &room) && is_inside(event.tool, &room) &&
               is_inside(event.event_id, &room));
        assert(read_once(text, &other, &again));
        assert(again.kind == event.kind && again.status == event.status &&
               str_equal(again.text, event.text) && str_equal(again.response, event.response));
    }
    buf_done(&room);
    buf_done(&other);
    return 0;
}
