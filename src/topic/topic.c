#include "topic/topic.h"

#include "base/log.h"
#include "base/mem.h"
#include "topic/inner.h"
#include "wire/grpc.h"

#include <assert.h>
#include <stdlib.h>

#define MESSAGE_MAX_BYTES (4 * MIB)
#define SCRATCH_KEEP_BYTES (16 * KIB)

struct topic *topic_new(const struct topic_options *options) {
    assert(options->first_sequence > 0 && options->max_frames > 0);
    struct topic *topic = MEM_NEW(struct topic);
    atomic_init(&topic->refs, 1);
    topic->options = *options;
    pthread_mutex_init(&topic->lock, NULL);
    topic_log_init(&topic->log, &topic->options);
    buf_init(&topic->scratch, MESSAGE_MAX_BYTES + GRPC_PREFIX_BYTES);
    list_init(&topic->views);
    return topic;
}

struct topic *topic_ref(struct topic *topic) {
    atomic_fetch_add_explicit(&topic->refs, 1, memory_order_relaxed);
    return topic;
}

void topic_unref(struct topic *topic) {
    if (!topic || atomic_fetch_sub_explicit(&topic->refs, 1, memory_order_acq_rel) != 1) return;
    assert(list_empty(&topic->views));
    topic_log_done(&topic->log);
    buf_done(&topic->scratch);
    pthread_mutex_destroy(&topic->lock);
    free(topic);
}

/* NULL: it is too long. */
static struct topic_frame *topic_encode(struct topic *topic, const struct topic_event *event) {
    struct buf *out = &topic->scratch;
    *event->sequence = topic->log.last + 1;
    size_t begin = grpc_begin_message(out);
    struct topic_frame *frame = NULL;
    if (pb_encode(event->type, event->message, out)) {
        grpc_end_message(out, begin);
        frame = topic_frame_new(*event->sequence, buf_str(out), event->label);
    }
    if (out->len > SCRATCH_KEEP_BYTES) {
        buf_release(out);
    } else {
        buf_clear(out);
    }
    return frame;
}

uint64_t topic_publish(struct topic *topic, const struct topic_event *event) {
    pthread_mutex_lock(&topic->lock);
    assert(!topic->ending.over);
    struct topic_frame *frame = topic_encode(topic, event);
    uint64_t sequence = topic->log.last + 1;
    if (frame) {
        topic_log_append(&topic->log, frame);
        topic_log_trim(&topic->log);
    } else {
        log_often(LOG_ERROR, "an event of %s is longer than a message; it is lost",
                  event->type->name);
        topic_log_lose(&topic->log, sequence);
    }
    topic_views_tell(topic);
    pthread_mutex_unlock(&topic->lock);
    return sequence;
}

void topic_skip(struct topic *topic, uint64_t sequence) {
    pthread_mutex_lock(&topic->lock);
    if (sequence > topic->log.last) topic->log.last = sequence;
    pthread_mutex_unlock(&topic->lock);
}

void topic_lose(struct topic *topic, uint64_t sequence) {
    pthread_mutex_lock(&topic->lock);
    assert(sequence >= topic->log.last);
    topic_log_lose(&topic->log, sequence);
    topic_views_tell(topic);
    pthread_mutex_unlock(&topic->lock);
}

void topic_end(struct topic *topic, enum err_code code, const char *text) {
    pthread_mutex_lock(&topic->lock);
    assert(!topic->ending.over);
    topic->ending = (struct topic_ending){true, code, text};
    topic_views_tell(topic);
    pthread_mutex_unlock(&topic->lock);
}

uint64_t topic_last(struct topic *topic) {
    pthread_mutex_lock(&topic->lock);
    uint64_t last = topic->log.last;
    pthread_mutex_unlock(&topic->lock);
    return last;
}

size_t topic_bytes(struct topic *topic) {
    pthread_mutex_lock(&topic->lock);
    size_t bytes = topic->log.bytes;
    pthread_mutex_unlock(&topic->lock);
    return bytes;
}

bool topic_is_read(struct topic *topic) {
    pthread_mutex_lock(&topic->lock);
    bool read = !list_empty(&topic->views);
    pthread_mutex_unlock(&topic->lock);
    return read;
}
