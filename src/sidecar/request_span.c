#include "sidecar/request_span.h"

#include "base/clock.h"

#include <assert.h>

#define US_A_MS 1000
#define FAILED_FROM 500 /* statuses below say that the caller was at fault */

void request_span_fork(struct trace *trace) {
    if (request_span_wanted(trace)) trace_id_random(trace->call, TRACE_SPAN_DIGITS);
}

static void read_id(const char *text, size_t digits, unsigned char *ret) {
    bool good = trace_id_read(str_from(text), digits, ret);
    assert(good); /* it was checked when it came, or made here */
    (void)good;
}

static struct trace_context context_of(const struct trace *trace, const char *span) {
    struct trace_context context = {.flags = TRACE_SAMPLED};
    char random[TRACE_SPAN_DIGITS + 1];
    if (!span) trace_id_random(random, TRACE_SPAN_DIGITS);
    read_id(trace->id, TRACE_ID_DIGITS, context.id);
    read_id(span ? span : random, TRACE_SPAN_DIGITS, context.span);
    return context;
}

/* NULL: there is none. */
static const unsigned char *parent_of(const char *span, unsigned char *room) {
    if (!span[0]) return NULL;
    read_id(span, TRACE_SPAN_DIGITS, room);
    return room;
}

/* "502" where nothing better is known. */
static struct str error_of(int status, struct str known, char room[static 16]) {
    struct buf text = {.at = room, .room = 16, .max_bytes = 16};
    if (known.len || status < FAILED_FROM) return known;
    buf_append_u64(&text, (uint64_t)status);
    return buf_str(&text);
}

void request_span_part(const struct trace *trace, const struct part_span *part) {
    char room[16];
    if (!request_span_wanted(trace)) return;
    const struct trace_context self = context_of(trace, part->self);
    unsigned char parent[TRACE_SPAN_BYTES];
    const struct span_attribute attributes[] = {
        SPAN_NUMBER("http.response.status_code", part->status ? part->status : -1)};
    spans_report(&(struct span){
        .self = &self,
        .parent = parent_of(part->by_agent ? trace->parent : trace->span, parent),
        .operation = part->operation,
        .what = part->what,
        .kind = part->kind,
        .ended_unix_ms = clock_unix_ms(),
        .took_ms = part->took_us / US_A_MS,
        .attributes = attributes,
        .count = ARRAY_LEN(attributes),
        .error = error_of(part->status, part->error, room)});
}

void request_span_whole(const struct trace *trace, const struct whole_span *whole) {
    char room[16];
    if (!request_span_wanted(trace)) return;
    const struct trace_context self = context_of(trace, trace->span);
    unsigned char parent[TRACE_SPAN_BYTES];
    struct str error =
        whole->status ? error_of(whole->status, whole->error, room) : STR("cancelled");
    const struct span_attribute attributes[] = {
        SPAN_TEXT("http.request.method", whole->method),
        SPAN_TEXT("url.path", whole->path),
        SPAN_NUMBER("http.response.status_code", whole->status ? whole->status : -1),
        SPAN_TEXT("gen_ai.agent.name", whole->agent),
        SPAN_TEXT("gen_ai.response.model", whole->model),
        SPAN_NUMBER("gen_ai.usage.input_tokens", whole->input),
        SPAN_NUMBER("gen_ai.usage.output_tokens", whole->output),
    };
    spans_report(&(struct span){.self = &self,
                                .parent = parent_of(trace->parent, parent),
                                .operation = SPAN_NAME("request"),
                                .what = whole->path,
                                .kind = SPAN_SERVER,
                                .ended_unix_ms = clock_unix_ms(),
                                .took_ms = whole->took_us / US_A_MS,
                                .attributes = attributes,
                                .count = ARRAY_LEN(attributes),
                                .error = error});
}
