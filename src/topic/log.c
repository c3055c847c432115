#include "topic/log.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 16

/* --- frames ------------------------------------------------------------------------------- */

struct topic_frame *topic_frame_new(uint64_t sequence, struct str bytes, struct str label) {
    struct topic_frame *frame = mem_alloc(sizeof(*frame) + bytes.len + label.len);
    atomic_init(&frame->refs, 1);
    frame->sequence = sequence;
    frame->len = bytes.len;
    frame->label_len = (uint32_t)label.len;
    memcpy(frame->bytes, bytes.at, bytes.len);
    if (label.len) memcpy(frame->bytes + bytes.len, label.at, label.len);
    return frame;
}

static struct topic_frame *topic_frame_ref(struct topic_frame *frame) {
    atomic_fetch_add_explicit(&frame->refs, 1, memory_order_relaxed);
    return frame;
}

static void topic_frame_unref(struct topic_frame *frame) {
    if (atomic_fetch_sub_explicit(&frame->refs, 1, memory_order_acq_rel) == 1) free(frame);
}

/* --- the window --------------------------------------------------------------------------- */

void topic_log_init(struct topic_log *log, const struct topic_options *options) {
    *log = (struct topic_log){.options = options,
                              .last = options->first_sequence - 1,
                              .dropped = options->first_sequence - 1};
}

void topic_log_done(struct topic_log *log) {
    for (size_t i = 0; i < log->count; i++) topic_frame_unref(log->entries[log->at + i].frame);
    free(log->entries);
}

/* Room for one more at the end: move to the front of the block, or into a larger one. */
static void log_make_room(struct topic_log *log) {
    if (log->at + log->count < log->room) return;
    if (log->at < log->room / 2 || log->room == 0) {
        log->room = log->room ? 2 * log->room : ROOM_FIRST;
        log->entries = mem_resize(log->entries, log->room * sizeof(*log->entries));
    }
    memmove(log->entries, log->entries + log->at, log->count * sizeof(*log->entries));
    log->at = 0;
}

/* At most one earlier frame has the label and is not superseded yet. */
static void log_supersede(struct topic_log *log, struct str label) {
    for (size_t i = log->count; i-- > 0;) {
        struct topic_entry *entry = &log->entries[log->at + i];
        if (entry->superseded || !str_equal(topic_frame_label(entry->frame), label)) continue;
        entry->superseded = true;
        return;
    }
}

void topic_log_append(struct topic_log *log, struct topic_frame *frame) {
    assert(frame->sequence > log->last);
    log_make_room(log);
    if (log->options->kind == TOPIC_STATE) log_supersede(log, topic_frame_label(frame));
    log->entries[log->at + log->count++] = (struct topic_entry){frame, false};
    log->bytes += frame->len;
    log->last = frame->sequence;
}

static bool log_is_over(const struct topic_log *log) {
    return log->count > 1 &&
           (log->bytes > log->options->max_bytes || log->count > log->options->max_frames);
}

static void log_drop(struct topic_log *log, struct topic_frame *frame) {
    log->bytes -= frame->len;
    if (frame->sequence > log->dropped) log->dropped = frame->sequence;
    topic_frame_unref(frame);
}

static void log_trim_events(struct topic_log *log) {
    while (log_is_over(log)) {
        log_drop(log, log->entries[log->at].frame);
        log->at++;
        log->count--;
    }
}

/* The frames that are not superseded stay, however old they are. */
static void log_trim_state(struct topic_log *log) {
    size_t kept = 0, count = log->count;
    for (size_t i = 0; i < count; i++) {
        struct topic_entry entry = log->entries[log->at + i];
        if (entry.superseded && log_is_over(log)) {
            log_drop(log, entry.frame);
            log->count--;
        } else {
            log->entries[log->at + kept++] = entry;
        }
    }
}

void topic_log_trim(struct topic_log *log) {
    if (!log_is_over(log)) return;
    if (log->options->kind == TOPIC_STATE) {
        log_trim_state(log);
    } else {
        log_trim_events(log);
    }
}

void topic_log_lose(struct topic_log *log, uint64_t sequence) {
    for (; log->count; log->at++, log->count--) log_drop(log, log->entries[log->at].frame);
    log->last = sequence;
    log->dropped = sequence;
}

void topic_log_follow(struct topic_log *log, const struct topic_log *from) {
    size_t index = topic_log_after(from, log->last);
    if (from->dropped > log->last) log->dropped = from->dropped;
    for (; index < from->count; index++)
        topic_log_append(log, topic_frame_ref(topic_log_entry(from, index)->frame));
    log->last = from->last;
}

size_t topic_log_after(const struct topic_log *log, uint64_t sequence) {
    size_t low = 0, high = log->count;
    if (high == 0 || topic_log_entry(log, high - 1)->frame->sequence <= sequence) return high;
    /* Most readers need only the newest. */
    if (high == 1 || topic_log_entry(log, high - 2)->frame->sequence <= sequence)
        return high - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (topic_log_entry(log, middle)->frame->sequence <= sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}
