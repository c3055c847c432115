/* An event stream through the sidecar. The first byte says how it is cut and whether rules read
 * it; cutting must change nothing. Whatever comes in, what comes out ends with [DONE], once, and is
 * a stream that reads the same when it is read again. */
#include "sidecar/events.h"

#include "wire/sse.h"

#include <assert.h>

static struct guardrail *rules[GUARDRAIL_PERSONAL_COUNT + 1];

static void make_rules(void) {
    static const struct guardrail_rule blocks = {.name = STR_INIT("b"),
                                                 .kind = GUARDRAIL_KEYWORD,
                                                 .pattern = STR_INIT("bomb"),
                                                 .action = GUARDRAIL_BLOCK};
    struct err e;
    for (size_t i = 0; !rules[GUARDRAIL_PERSONAL_COUNT] && i <= GUARDRAIL_PERSONAL_COUNT; i++) {
        const struct guardrail_rule *rule =
            i < GUARDRAIL_PERSONAL_COUNT ? &guardrail_personal[i] : &blocks;
        bool made = guardrail_new(rule, &rules[i], &e);
        assert(made);
        (void)made;
    }
}

static void on_event(struct json object, void *ctx) {
    (void)object;
    (void)ctx;
}

static void write_done(struct json own, struct buf *out, void *ctx) {
    (void)ctx;
    buf_append(out, own.raw.len ? own.raw : STR("{}"));
}

static void run(struct str stream, size_t piece, bool filters, struct buf *out) {
    struct events events;
    bool more = true;
    events_init(&events, &(struct events_options){
                             .terminates = true,
                             .event_max_bytes = 1 * MIB,
                             .rules = {rules, filters ? GUARDRAIL_PERSONAL_COUNT + 1 : 0},
                             .sink = {on_event, write_done, NULL}});
    for (; stream.len && more; stream = str_skip(stream, piece))
        more = events_feed(&events, str_head(stream, piece), out);
    if (more) events_end(&events, NULL, out);
    assert(events.over);
    events_done(&events);
}

struct ends {
    size_t dones;
    bool last;
};

static void count(const struct sse_event *event, void *ctx) {
    struct ends *ends = ctx;
    ends->last =
        str_equal(event->data, STR("[DONE]")) && str_equal(event->type, STR("message"));
    ends->dones += ends->last;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    struct str stream = str_of(data + 1, size - 1);
    bool filters = data[0] & 1;
    size_t piece = data[0] / 2 + 1;
    struct buf whole, cut;
    struct ends ends = {0};
    struct err e;
    make_rules();
    buf_init(&whole, 64 * (size + 1024));
    buf_init(&cut, 64 * (size + 1024));
    run(stream, stream.len ? stream.len : 1, filters, &whole);
    run(stream, piece, filters, &cut);
    assert(buf_ok(&whole) && str_equal(buf_str(&whole), buf_str(&cut)));
    struct sse *sse = sse_new(whole.len + 1, count, &ends);
    bool read = sse_feed(sse, buf_str(&whole), &e);
    assert(read && !sse_midway(sse) && ends.last && ends.dones == 1);
    (void)read;
    sse_free(sse);
    buf_done(&whole);
    buf_done(&cut);
    return 0;
}
