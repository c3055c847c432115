/* usage: the token counts and cost of one model call.
 *
 * One list describes every count: its position in the struct and on disk, its names in files
 * and in JSON, and whether the store sums it. Events, tapes, scripts, sums and contracts walk
 * that list. A new count needs a member of the struct and a row at the end of the list. It also
 * needs a migration if the store sums it, and a .proto field if a contract shows it.
 *
 * Memory   the model's name is borrowed.
 * Threads  none; values only, and the table is constant.
 */
#ifndef WEIR_WIRE_USAGE_H
#define WEIR_WIRE_USAGE_H

#include "base/attr.h"
#include "base/str.h"

#include <stddef.h>

#define TOKENS_UNKNOWN INT64_C(-1)

struct event_usage {
    struct str model;
    /* Tokens, or TOKENS_UNKNOWN. tool_use and cached are parts of prompt, thoughts of
     * completion. */
    int64_t prompt, completion, total, tool_use, thoughts, cached;
    int64_t call_sequence; /* model calls of this run, counted from 0 */
    int64_t cost_nano;     /* billionths of a dollar, or TOKENS_UNKNOWN: no price is known */
    /* Also parts of prompt: tokens written to a cache, for minutes and for an hour. */
    int64_t cache_write, cache_write_hour;
    /* For a call with incomplete counts: the estimated tokens, at four bytes per token where
     * the provider gave no count, and their cost, or TOKENS_UNKNOWN. */
    bool estimated;
    int64_t estimate_prompt, estimate_completion, estimate_cost_nano;
};

enum usage_type {
    USAGE_TOKENS, /* int64_t; missing is TOKENS_UNKNOWN. On tapes */
    USAGE_NUMBER, /* int64_t; missing is 0 */
    USAGE_FLAG,   /* bool */
};

/* When an event as JSON shows it. */
enum usage_shown { USAGE_ALWAYS, USAGE_ABOVE_ZERO, USAGE_WHEN_ESTIMATED, USAGE_NEVER };

struct usage_field {
    size_t at; /* in struct event_usage */
    enum usage_type type;
    const char *name; /* on tapes, in scripts, and the store's column of its sum */
    const char
        *open_column;     /* the store's count of calls that left it open; NULL: not summed */
    const char *sum_name; /* in a sum as JSON, for what scripts may say too; else NULL */
    enum usage_shown shown;
    const char *event_name; /* in an event as JSON, and of the field in a contract's message */
};

/* Every field after the model, in the order of its bytes on disk. `open` is the column of calls
 * that left it open, `sum` its name in a sum, `event` its name in an event. */
/* clang-format off */
#define USAGE_FIELDS(ROW)                                                                                                      \
    /*  type    member               open                  sum                  shown           event */                       \
    ROW(TOKENS, prompt,              "prompt_unknown",     "prompt_tokens",     ALWAYS,         "prompt_tokens")               \
    ROW(TOKENS, completion,          "completion_unknown", "completion_tokens", ALWAYS,         "completion_tokens")           \
    ROW(TOKENS, total,               "total_unknown",      "total_tokens",      ALWAYS,         "total_tokens")                \
    ROW(TOKENS, tool_use,            "tool_use_unknown",   "tool_use_tokens",   ALWAYS,         "tool_use_prompt_tokens")      \
    ROW(TOKENS, thoughts,            "thoughts_unknown",   "thoughts_tokens",   ALWAYS,         "thoughts_tokens")             \
    ROW(TOKENS, cached,              "cached_unknown",     "cached_tokens",     ALWAYS,         "cached_tokens")               \
    ROW(NUMBER, call_sequence,       NULL,                 NULL,                ALWAYS,         "call_sequence")               \
    ROW(TOKENS, cost_nano,           "cost_unknown",       NULL,                ALWAYS,         "cost_nano_usd")               \
    ROW(TOKENS, cache_write,         NULL,                 NULL,                ABOVE_ZERO,     "cache_write_tokens")          \
    ROW(TOKENS, cache_write_hour,    NULL,                 NULL,                ABOVE_ZERO,     "cache_write_hour_tokens")     \
    ROW(FLAG,   estimated,           NULL,                 NULL,                NEVER,          NULL)                          \
    ROW(NUMBER, estimate_prompt,     NULL,                 NULL,                WHEN_ESTIMATED, "estimated_prompt_tokens")     \
    ROW(NUMBER, estimate_completion, NULL,                 NULL,                WHEN_ESTIMATED, "estimated_completion_tokens") \
    ROW(NUMBER, estimate_cost_nano,  NULL,                 NULL,                WHEN_ESTIMATED, "estimated_cost_nano_usd")
/* clang-format on */

#define USAGE_COUNT_ONE(type, member, ...) +1
enum { USAGE_FIELD_COUNT = USAGE_FIELDS(USAGE_COUNT_ONE) };

extern const struct usage_field usage_fields[USAGE_FIELD_COUNT];

/* The usage of a model call without any counts. */
#define USAGE_MISSING_TOKENS TOKENS_UNKNOWN
#define USAGE_MISSING_NUMBER 0
#define USAGE_MISSING_FLAG false
#define USAGE_MISSING(type, member, ...) .member = USAGE_MISSING_##type,
#define USAGE_UNKNOWN ((struct event_usage){USAGE_FIELDS(USAGE_MISSING).model = STR_EMPTY})

/* The count of a field that is not a flag. */
static inline int64_t *usage_at(struct event_usage *usage, const struct usage_field *field) {
    return (int64_t *)(void *)((char *)usage + field->at);
}

static inline int64_t usage_get(const struct event_usage *usage,
                                const struct usage_field *field) {
    return *(const int64_t *)(const void *)((const char *)usage + field->at);
}

/* The sum of two non-negative numbers, or INT64_MAX when it overflows. */
int64_t usage_sum(int64_t a, int64_t b);

/* Add to `sums` each field of `more` that the store sums. */
void usage_add(struct event_usage *sums, const struct event_usage *more);

#endif
