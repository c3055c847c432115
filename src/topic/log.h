/* log: the window of a topic: frames in the order of their sequences.
 *
 * The topic has one, and each loop with readers has one of the same frames. Private to topic/.
 *
 * Memory   a log holds a reference to each of its frames.
 * Threads  its owner's; frames may be shared by logs of several threads.
 */
#ifndef WEIR_TOPIC_LOG_H
#define WEIR_TOPIC_LOG_H

#include "topic/topic.h"

#include <stdatomic.h>

/* An event, encoded. It does not change. */
struct topic_frame {
    atomic_uint refs;
    uint32_t label_len;
    uint64_t sequence;
    size_t len;
    char bytes[]; /* the label follows */
};

/* With one reference. `bytes` is a gRPC message with its prefix. */
struct topic_frame *topic_frame_new(uint64_t sequence, struct str bytes, struct str label);

static inline struct str topic_frame_label(const struct topic_frame *frame) {
    return str_of(frame->bytes + frame->len, frame->label_len);
}

struct topic_entry {
    struct topic_frame *frame;
    bool superseded; /* a later one has the same label; TOPIC_STATE only */
};

struct topic_log {
    const struct topic_options *options;
    struct topic_entry *entries; /* `count` of them from index `at` */
    size_t at, count, room;
    size_t bytes;
    uint64_t last;    /* the newest sequence that it ever had */
    uint64_t dropped; /* the newest one of what is gone */
};

void topic_log_init(struct topic_log *log, const struct topic_options *options);
void topic_log_done(struct topic_log *log);

static inline const struct topic_entry *topic_log_entry(const struct topic_log *log,
                                                        size_t index) {
    return &log->entries[log->at + index];
}

/* Add the newest frame. Takes the caller's reference. */
void topic_log_append(struct topic_log *log, struct topic_frame *frame);

/* Drop the oldest frames, until the rest is within the limits. */
void topic_log_trim(struct topic_log *log);

/* Drop all frames, and go on after `sequence`. */
void topic_log_lose(struct topic_log *log, uint64_t sequence);

/* Add the frames of `from` that are newer than all of this log. Drops nothing, but learns what
 * `from` dropped before this log had seen it. */
void topic_log_follow(struct topic_log *log, const struct topic_log *from);

/* The index of the first frame after `sequence`; `count` if there is none. */
size_t topic_log_after(const struct topic_log *log, uint64_t sequence);

#endif
