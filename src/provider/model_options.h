/* model_options: what may be set of a model's reply: how long it may be, how it is sampled, where it
 * ends.
 *
 * An agent has its own. The caller of a turn may bring others, which are narrowed by the agent's and
 * kept with the run:
 *
 *     the agent's ─┐
 *                  ├─▶ model_options_narrow() ─▶ struct provider_request ─▶ a dialect's members
 *     a caller's ──┘
 *
 * Memory   a plain value; its texts and its list are borrowed.
 * Threads  none.
 * Source   docs/internals/turn.md "Options of the caller".
 */
#ifndef WEIR_PROVIDER_MODEL_OPTIONS_H
#define WEIR_PROVIDER_MODEL_OPTIONS_H

#include "base/arena.h"
#include "base/err.h"
#include "wire/json.h"

#define MODEL_STOPS_MAX 16
#define MODEL_STOP_MAX_BYTES 256

/* The provider chooses whatever is not set. */
struct model_options {
    int64_t output_tokens_max; /* 0: not set */
    double temperature, top_p; /* below 0: not set */
    struct str effort;         /* of reasoning: "low", "medium", "high"; empty: not set */
    int64_t thinking_tokens;   /* budget of reasoning; 0: not set */
    int64_t top_k;             /* 0: not set */
    double presence_penalty, frequency_penalty; /* 0: not set, which is the same */
    bool seeded;
    int64_t seed;
    const struct str *stops; /* the reply ends before the first of these; none is empty */
    size_t stop_count;       /* at most MODEL_STOPS_MAX */
    /* A caller's: what the model does not take is left out or moved to its bounds. */
    bool bends;
};

#define MODEL_OPTIONS_NONE ((struct model_options){.temperature = -1, .top_p = -1})

/* The agent's `own` options with those of a caller. A reply becomes shorter by them, never longer.
 * `temperature` and `top_p` are one choice: the caller's, if it sets any of them. */
struct model_options model_options_narrow(const struct model_options *own,
                                          const struct model_options *callers);

/* Write what is set as members of the open object. */
void model_options_write(const struct model_options *options, struct json_writer *json);

/* Read such an object. The list and its texts lie in the arena.
 * errors  ERR_DATA_LOSS it was not written here, or is larger than the arena */
MUST_CHECK bool model_options_read(struct json object, struct arena *arena,
                                   struct model_options *ret, struct err *e);

#endif
