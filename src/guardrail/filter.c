#include "guardrail/filter.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "guardrail/compiled.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

#define PIECE_BYTES (16 * KIB)       /* a longer text is fed in pieces of this size */
#define REPLACED_MAX_BYTES (2 * MIB) /* a replacement may repeat a long match many times */
#define HELD_MAX_BYTES (REPLACED_MAX_BYTES + MIB)
#define HEAP_MAX_KIB 4096u

/* Step limit for each position where a match may begin. It does not depend on the length of the
 * text, so that the cuts have little influence on whether a search is given up. */
#define STEPS_MAX (2000u + 4u * GUARDRAIL_MATCH_MAX_BYTES)

/* Time limit for all searches of one text. Only expensive patterns come near it. Searches of
 * short texts are not timed, because their steps bound them. */
#define WORK_NS UINT64_C(250000000)
#define WORK_PER_BYTE_NS 200u
#define MEASURED_BYTES 512u

/* A long partial match is searched again when it has grown by this share, not after each piece
 * of a few bytes. */
#define WAIT_MIN_BYTES 256u
#define WAIT_SHARE 8u

/* The text of one rule. Bytes before `from` are decided and kept only for look-behinds. */
struct filter_stage {
    const struct guardrail *rule;
    struct buf held;
    size_t from;
    size_t wait_bytes; /* undecided bytes needed for the next search */
};

/* One feed. All its searches share the memory that a search needs. */
struct feed {
    struct filter *filter;
    struct buf *out;
    pcre2_match_data *data;
    pcre2_match_context *context;
    bool last; /* the text ends with this feed */
};

/* --- searching ---------------------------------------------------------------------------- */

enum found {
    FOUND_NOTHING,
    FOUND_MATCH,
    FOUND_PARTIAL, /* the text ends inside a possible match */
    FOUND_TOO_HARD,
};

/* The end of the text that a search sees: at most the maximum length of a match after
 * `from`. */
struct window {
    size_t end;
    bool full;  /* it has the maximum length */
    bool final; /* the whole text ends here */
};

static struct window window_of(const struct filter_stage *stage, bool last) {
    struct str text = str_skip(buf_str(&stage->held), stage->from);
    struct window window = {.end = stage->held.len, .final = last};
    if (text.len < GUARDRAIL_MATCH_MAX_BYTES) return window;
    window.end = stage->from + utf8_cut(text, GUARDRAIL_MATCH_MAX_BYTES);
    window.full = true;
    window.final = last && window.end == stage->held.len;
    return window;
}

static uint64_t cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int match(struct feed *feed, const struct filter_stage *stage, size_t end,
                 uint32_t options) {
    return pcre2_match(stage->rule->code, (PCRE2_SPTR)stage->held.at, end, stage->from,
                       options | PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, feed->data,
                       feed->context);
}

static enum found search(struct feed *feed, const struct filter_stage *stage, size_t end,
                         uint32_t options) {
    struct filter *filter = feed->filter;
    bool measured = end - stage->from >= MEASURED_BYTES;
    uint64_t before = measured ? cpu_ns() : 0;
    int found = match(feed, stage, end, options);
    if (measured) filter->spent_ns += cpu_ns() - before;
    if (filter->spent_ns > WORK_NS + WORK_PER_BYTE_NS * filter->bytes) return FOUND_TOO_HARD;
    if (found >= 0) return FOUND_MATCH;
    if (found == PCRE2_ERROR_NOMATCH) return FOUND_NOTHING;
    return found == PCRE2_ERROR_PARTIAL ? FOUND_PARTIAL : FOUND_TOO_HARD;
}

/* --- deciding ----------------------------------------------------------------------------- */

static bool pass_on(struct feed *feed, size_t index, struct str text);

static bool filter_release(struct feed *feed, size_t index, size_t to) {
    struct filter_stage *stage = &feed->filter->stages[index];
    struct str text = str_of(stage->held.at + stage->from, to - stage->from);
    stage->from = to;
    return pass_on(feed, index + 1, text);
}

static bool release_character(struct feed *feed, size_t index) {
    const struct filter_stage *stage = &feed->filter->stages[index];
    return filter_release(
        feed, index, stage->from + utf8_head(str_skip(buf_str(&stage->held), stage->from), 1));
}

static bool block(struct feed *feed, const struct guardrail *rule) {
    feed->filter->result.blocked_by = rule;
    return false;
}

static bool redact(struct feed *feed, size_t index, const size_t *groups, size_t count) {
    struct filter_stage *stage = &feed->filter->stages[index];
    struct buf text;
    buf_init(&text, REPLACED_MAX_BYTES);
    guardrail_replace(stage->rule, buf_str(&stage->held), groups, count, &text);
    feed->filter->result.redacted++;
    stage->from = groups[1];
    bool passed = pass_on(feed, index + 1, buf_str(&text));
    buf_done(&text);
    return passed;
}

static bool filter_act(struct feed *feed, size_t index) {
    const struct filter_stage *stage = &feed->filter->stages[index];
    struct guardrail *rule = (struct guardrail *)stage->rule; /* for its counters */
    size_t groups[2 * 100], count = pcre2_get_ovector_count(feed->data);
    const size_t *found = pcre2_get_ovector_pointer(feed->data);
    if (count > ARRAY_LEN(groups) / 2) count = ARRAY_LEN(groups) / 2;
    memcpy(groups, found, 2 * count * sizeof(groups[0])); /* later rules reuse the memory */
    struct str text = str_of(stage->held.at + groups[0], groups[1] - groups[0]);
    bool accepted = guardrail_accepts(rule, text);
    if (!filter_release(feed, index, groups[0])) return false;
    if (!accepted) return release_character(feed, index);
    atomic_fetch_add_explicit(&rule->matches, 1, memory_order_relaxed);
    if (rule->action == GUARDRAIL_BLOCK) return block(feed, rule);
    if (rule->action == GUARDRAIL_REDACT) return redact(feed, index, groups, count);
    feed->filter->result.warned++;
    return filter_release(feed, index, groups[1]);
}

static bool filter_give_up(struct feed *feed, size_t index, struct window window) {
    struct guardrail *rule = (struct guardrail *)feed->filter->stages[index].rule;
    atomic_fetch_add_explicit(&rule->undecided, 1, memory_order_relaxed);
    feed->filter->result.undecided = true;
    if (rule->action != GUARDRAIL_WARN) return block(feed, rule);
    return filter_release(feed, index, window.end);
}

/* A match may begin at `from` and extend past the window: judge the part within the window. */
static bool force(struct feed *feed, size_t index, struct window window) {
    struct filter_stage *stage = &feed->filter->stages[index];
    switch (search(feed, stage, window.end, PCRE2_ANCHORED | PCRE2_NOTEOL)) {
    case FOUND_MATCH: return filter_act(feed, index);
    case FOUND_TOO_HARD: return filter_give_up(feed, index, window);
    default: return release_character(feed, index);
    }
}

/* One search. *ret_waits: more text is needed to decide. */
static bool filter_step(struct feed *feed, size_t index, bool *ret_waits) {
    struct filter_stage *stage = &feed->filter->stages[index];
    struct window window = window_of(stage, feed->last);
    uint32_t options = window.final ? 0 : PCRE2_PARTIAL_HARD;
    enum found found = search(feed, stage, window.end, options);
    if (found == FOUND_MATCH) return filter_act(feed, index);
    if (found == FOUND_TOO_HARD) return filter_give_up(feed, index, window);
    if (found == FOUND_NOTHING) return filter_release(feed, index, window.end);
    size_t start = pcre2_get_ovector_pointer(feed->data)[0];
    if (start > stage->from) return filter_release(feed, index, start);
    if (window.full) return force(feed, index, window);
    size_t waiting = stage->held.len - stage->from;
    stage->wait_bytes = waiting < WAIT_MIN_BYTES ? 0 : waiting + waiting / WAIT_SHARE;
    *ret_waits = true;
    return true;
}

static void forget_decided(struct filter_stage *stage) {
    if (stage->from <= stage->rule->behind_bytes) return;
    size_t drop = stage->from - stage->rule->behind_bytes;
    drop = utf8_cut(buf_str(&stage->held), drop);
    buf_drop(&stage->held, drop);
    stage->from -= drop;
}

static bool pass_on(struct feed *feed, size_t index, struct str text) {
    if (text.len == 0) return true;
    if (index == feed->filter->rules.count) {
        buf_append(feed->out, text);
        return true;
    }
    struct filter_stage *stage = &feed->filter->stages[index];
    bool last = feed->last;
    buf_append(&stage->held, text);
    size_t undecided = stage->held.len - stage->from;
    if (undecided < stage->wait_bytes && undecided < GUARDRAIL_MATCH_MAX_BYTES) return true;
    feed->last = false; /* earlier rules may still release text */
    bool waits = false, passed = true;
    while (passed && !waits && stage->from < stage->held.len)
        passed = filter_step(feed, index, &waits);
    feed->last = last;
    if (passed) forget_decided(stage);
    return passed;
}

/* --- feeding ------------------------------------------------------------------------------ */

static struct feed feed_begin(struct filter *filter, struct buf *out) {
    struct feed feed = {.filter = filter, .out = out};
    uint32_t pairs = 1;
    for (size_t i = 0; i < filter->rules.count; i++) {
        uint32_t groups = 0;
        pcre2_pattern_info(filter->stages[i].rule->code, PCRE2_INFO_CAPTURECOUNT, &groups);
        if (groups + 1 > pairs) pairs = groups + 1;
    }
    feed.data = pcre2_match_data_create(pairs, NULL);
    feed.context = pcre2_match_context_create(NULL);
    pcre2_set_match_limit(feed.context, STEPS_MAX);
    pcre2_set_depth_limit(feed.context, STEPS_MAX);
    pcre2_set_heap_limit(feed.context, HEAP_MAX_KIB);
    return feed;
}

static void feed_done(struct feed *feed) {
    pcre2_match_context_free(feed->context);
    pcre2_match_data_free(feed->data);
}

static bool feed_text(struct filter *filter, struct str text, struct buf *out) {
    struct feed feed = feed_begin(filter, out);
    bool passed = true;
    filter->bytes += text.len;
    while (passed && text.len) {
        size_t len = utf8_cut(text, PIECE_BYTES);
        passed = pass_on(&feed, 0, str_head(text, len));
        text = str_skip(text, len);
    }
    feed_done(&feed);
    return passed;
}

bool filter_feed(struct filter *filter, struct str bytes, struct buf *out) {
    if (filter->result.blocked_by) return false;
    if (filter->rules.count == 0) {
        buf_append(out, bytes);
        return true;
    }
    struct buf room;
    bool passed = feed_text(filter, utf8_tail_take(&filter->tail, bytes, &room), out);
    buf_done(&room);
    return passed;
}

/* End the rules in order: when one has ended, the next gets no more text. */
static bool filter_finish(struct filter *filter, struct buf *out) {
    struct feed feed = feed_begin(filter, out);
    bool passed = true;
    for (size_t i = 0; passed && i < filter->rules.count; i++) {
        struct filter_stage *stage = &filter->stages[i];
        bool waits = false;
        while (passed && stage->from < stage->held.len) {
            feed.last = true;
            passed = filter_step(&feed, i, &waits);
            assert(!waits);
        }
    }
    feed_done(&feed);
    return passed;
}

bool filter_end(struct filter *filter, struct buf *out) {
    bool passed = !filter->result.blocked_by;
    if (passed && filter->rules.count) {
        struct str rest = utf8_tail_end(&filter->tail);
        passed = feed_text(filter, rest, out) && filter_finish(filter, out);
    }
    filter_reset(filter);
    return passed;
}

/* --- creation and release ----------------------------------------------------------------- */

void filter_init(struct filter *filter, struct guardrails rules) {
    *filter = (struct filter){.rules = rules};
    if (rules.count) filter->stages = mem_zero(rules.count, sizeof(*filter->stages));
    for (size_t i = 0; i < rules.count; i++) {
        filter->stages[i].rule = rules.rules[i];
        buf_init(&filter->stages[i].held, HELD_MAX_BYTES);
    }
}

void filter_done(struct filter *filter) {
    for (size_t i = 0; i < filter->rules.count; i++) buf_done(&filter->stages[i].held);
    free(filter->stages);
    *filter = (struct filter){0};
}

void filter_reset(struct filter *filter) {
    filter->tail = (struct utf8_tail){0};
    for (size_t i = 0; i < filter->rules.count; i++) {
        buf_release(&filter->stages[i].held);
        filter->stages[i].from = filter->stages[i].wait_bytes = 0;
    }
}

size_t filter_held(const struct filter *filter) {
    size_t held = filter->tail.len;
    for (size_t i = 0; i < filter->rules.count; i++)
        held += filter->stages[i].held.len - filter->stages[i].from;
    return held;
}

bool filter_text(struct guardrails rules, struct str text, struct buf *out,
                 struct filter_result *ret) {
    struct filter filter;
    filter_init(&filter, rules);
    bool passed = filter_feed(&filter, text, out) && filter_end(&filter, out);
    *ret = filter.result;
    filter_done(&filter);
    return passed;
}
