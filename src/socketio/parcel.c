#include "socketio/parcel.h"

#include "base/mem.h"
#include "wire/websocket.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

#define FRAME_HEAD_MAX_BYTES 14

struct parcel {
    atomic_uint refs;
    struct buf frame;
    size_t text_len; /* at its end */
};

struct parcel *parcel_new(struct str text) {
    struct parcel *parcel = MEM_NEW(struct parcel);
    atomic_init(&parcel->refs, 1);
    buf_init(&parcel->frame, text.len + FRAME_HEAD_MAX_BYTES);
    parcel->text_len = text.len;
    bool fits = websocket_append(&parcel->frame, WEBSOCKET_SERVER, WEBSOCKET_TEXT, text);
    assert(fits);
    (void)fits;
    return parcel;
}

struct parcel *parcel_ref(struct parcel *parcel) {
    atomic_fetch_add_explicit(&parcel->refs, 1, memory_order_relaxed);
    return parcel;
}

void parcel_unref(struct parcel *parcel) {
    if (!parcel) return;
    if (atomic_fetch_sub_explicit(&parcel->refs, 1, memory_order_acq_rel) > 1) return;
    buf_done(&parcel->frame);
    free(parcel);
}

struct str parcel_frame(const struct parcel *parcel) {
    return buf_str(&parcel->frame);
}

struct str parcel_text(const struct parcel *parcel) {
    return str_skip(parcel_frame(parcel), parcel->frame.len - parcel->text_len);
}
