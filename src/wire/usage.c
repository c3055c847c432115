#include "wire/usage.h"

#include <assert.h>

#define FIELD(type, member, open, sum, shown, event)                                           \
    {offsetof(struct event_usage, member),                                                     \
     USAGE_##type,                                                                             \
     #member,                                                                                  \
     open,                                                                                     \
     sum,                                                                                      \
     USAGE_##shown,                                                                            \
     event},
const struct usage_field usage_fields[USAGE_FIELD_COUNT] = {USAGE_FIELDS(FIELD)};

/* Each count is eight bytes, the flag with its padding, so every member has a row. */
static_assert(sizeof(struct event_usage) ==
                  sizeof(struct str) + USAGE_FIELD_COUNT * sizeof(int64_t),
              "every count has a row in USAGE_FIELDS");

int64_t usage_sum(int64_t a, int64_t b) {
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

void usage_add(struct event_usage *sums, const struct event_usage *more) {
    for (size_t i = 0; i < USAGE_FIELD_COUNT; i++) {
        const struct usage_field *field = &usage_fields[i];
        if (!field->open_column || usage_get(more, field) <= 0) continue;
        int64_t *sum = usage_at(sums, field);
        *sum = usage_sum(*sum, usage_get(more, field));
    }
}
