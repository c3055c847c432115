#include "spans/spans.h"

#include "wire/json.h"

#include <pthread.h>
#include <stdio.h>

#define NS_A_MS 1000000
#define STATUS_ERROR 2
#define SPAN_MAX_BYTES (16 * KIB)

atomic_bool spans_are_on;

static struct {
    pthread_mutex_t lock;
    struct buf waiting; /* guarded */
    uint64_t dropped;   /* guarded */
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER};

void spans_start(void) {
    buf_init(&queue.waiting, SPANS_MAX_BYTES);
    queue.dropped = 0;
    atomic_store(&spans_are_on, true);
}

void spans_stop(void) {
    if (!spans_wanted()) return;
    atomic_store(&spans_are_on, false);
    buf_done(&queue.waiting);
}

/* --- one span as JSON ------------------------------------------------------------------------- */

static void write_moment(struct json_writer *json, const char *name, int64_t unix_ms) {
    char digits[32];
    snprintf(digits, sizeof(digits), "%lld", (long long)unix_ms * NS_A_MS);
    json_member_str(json, name, str_from(digits));
}

static void write_attribute(struct json_writer *json, const struct span_attribute *attribute) {
    char digits[32];
    if (attribute->counts ? attribute->number < 0 : !attribute->text.len) return;
    json_open_object(json);
    json_member_str(json, "key", str_from(attribute->name));
    json_member_object(json, "value");
    snprintf(digits, sizeof(digits), "%lld", (long long)attribute->number);
    if (attribute->counts)
        json_member_str(json, "intValue", str_from(digits));
    else
        json_member_str(json, "stringValue", str_head(attribute->text, SPAN_TEXT_BYTES));
    json_close(json);
    json_close(json);
}

static void write_name(struct json_writer *json, const struct span *span) {
    char name[SPAN_TEXT_BYTES + 64];
    snprintf(name, sizeof(name), "%s%s" STR_FMT, span->operation, span->what.len ? " " : "",
             STR_ARG(str_head(span->what, SPAN_TEXT_BYTES)));
    json_member_str(json, "name", str_from(name));
}

static void write_span(const struct span *span, struct buf *out) {
    struct json_writer json = json_writer(out);
    const struct span_attribute failed = SPAN_TEXT("error.type", span->error);
    json_open_object(&json);
    json_member_str(&json, "traceId", str_from(span->self->id));
    json_member_str(&json, "spanId", str_from(span->self->span));
    if (span->self->state_len)
        json_member_str(&json, "traceState", trace_context_state(span->self));
    if (span->parent.len) json_member_str(&json, "parentSpanId", span->parent);
    write_name(&json, span);
    json_member_u64(&json, "kind", span->kind);
    write_moment(&json, "startTimeUnixNano", span->ended_unix_ms - (int64_t)span->took_ms);
    write_moment(&json, "endTimeUnixNano", span->ended_unix_ms);
    json_member_array(&json, "attributes");
    for (size_t i = 0; i < span->count; i++) write_attribute(&json, &span->attributes[i]);
    write_attribute(&json, &failed);
    json_close(&json);
    if (span->error.len) {
        json_member_object(&json, "status");
        json_member_u64(&json, "code", STATUS_ERROR);
        json_close(&json);
    }
    json_close(&json);
}

/* --- the queue -------------------------------------------------------------------------------- */

void spans_report(const struct span *span) {
    struct buf text;
    if (!spans_wanted()) return;
    buf_init(&text, SPAN_MAX_BYTES);
    write_span(span, &text);
    pthread_mutex_lock(&queue.lock);
    bool fits = buf_ok(&text) && queue.waiting.len + 1 + text.len <= SPANS_MAX_BYTES;
    if (!fits) {
        queue.dropped++;
    } else {
        if (queue.waiting.len) buf_append_byte(&queue.waiting, ',');
        buf_append(&queue.waiting, buf_str(&text));
    }
    pthread_mutex_unlock(&queue.lock);
    buf_done(&text);
}

bool spans_take(struct buf *out, uint64_t *ret_dropped) {
    pthread_mutex_lock(&queue.lock);
    bool found = queue.waiting.len > 0;
    if (found) buf_append(out, buf_str(&queue.waiting));
    buf_clear(&queue.waiting);
    *ret_dropped = queue.dropped;
    queue.dropped = 0;
    pthread_mutex_unlock(&queue.lock);
    return found;
}
