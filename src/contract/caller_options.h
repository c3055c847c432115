/* caller_options: what a request says of the model's reply: how long it may be, how it is sampled,
 * where it ends.
 *
 * Each API has its own names and bounds for the same options; a table says which. What is refused is
 * named: "temperature: must be a number from 0 to 2, not a string".
 *
 * Memory   results lie in the caller's arena.
 * Threads  none.
 * Source   docs/openai.md, docs/anthropic.md; provider/model_options.h.
 */
#ifndef WEIR_CONTRACT_CALLER_OPTIONS_H
#define WEIR_CONTRACT_CALLER_OPTIONS_H

#include "provider/model_options.h"

struct caller_option {
    const char *name;
    enum caller_option_kind {
        CALLER_LONGEST, /* a whole number above 0; of several, the smallest counts */
        CALLER_COUNT,   /* likewise, and 0 sets nothing */
        CALLER_NUMBER,  /* a number between the bounds */
        CALLER_SEED,    /* a whole number */
        CALLER_STOPS,   /* a text, or a list of texts */
    } kind;
    size_t at; /* offset in struct model_options, where the kind does not say it */
    double least, most;
};

/* Read the members of `body` that the table names, where they are there and not null. *ret: NULL if
 * none is set.
 * errors  ERR_INVALID_ARGUMENT, with the member in *ret_name (a constant of the table);
 *         ERR_TOO_LARGE the arena's limit */
MUST_CHECK bool caller_options_take(const struct caller_option *table, size_t count,
                                    struct json body, struct arena *arena,
                                    const struct model_options **ret, const char **ret_name,
                                    struct err *e);

#endif
