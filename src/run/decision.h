/* decision: what a human answers when a tool call waits for him.
 *
 * Any wire brings one text. JSON says it exactly:
 *
 *     {"decision":"approve"}   {"decision":"refuse","reason":"..."}   {"approved":true}
 *     {"decision":"edit","args":{...}}   true   false
 *
 * and so does a word that is plainly a yes or a no (wire/yes_no.h). Everything else decides
 * nothing: the question stays, and where it is asked again the words are kept for the model, an
 * EVENT_ITEM of type ASIDE_ITEM beside the question.
 *
 * Memory   what it finds lives in the arena given.
 * Threads  none; values only.
 * Source   checks.md K29.
 */
#ifndef WEIR_RUN_DECISION_H
#define WEIR_RUN_DECISION_H

#include "base/arena.h"
#include "conversation/conversation.h" /* ASIDE_ITEM, APPROVAL_ID */
#include "run/parking.h"
#include "wire/event.h"
#include "wire/yes_no.h"

enum decision_kind { DECISION_NONE, DECISION_APPROVE, DECISION_REFUSE, DECISION_EDIT };

struct decision {
    enum decision_kind kind;
    struct str args;   /* EDIT: one JSON object, in place of the model's */
    struct str reason; /* REFUSE: why, or empty */
};

/* `more` are the operator's own words, or NULL.
 * errors  ERR_RESOURCE_EXHAUSTED the arena is full */
MUST_CHECK bool decision_read(struct str answer, const struct yes_no_words *more,
                              struct arena *arena, struct decision *ret, struct err *e);

struct json;

/* Whether the call that is asked about may be made with `args` instead.
 * errors  ERR_INVALID_ARGUMENT with the place that does not fit the tool's schema */
MUST_CHECK bool decision_args_fit(const struct parked_question *asked, struct json args,
                                  struct err *e);

/* Whether what is asked may be answered with these words: PARKING_TAKEN, PARKING_REFUSED (an
 * edit of a call does not fit its tool) or PARKING_UNDECIDED (they decide nothing; `e` says
 * which words would). What a plain question is answered is free. */
MUST_CHECK enum parking_found decision_fits(const struct parked_question *asked,
                                            struct str answer, struct err *e);

/* The same where words may also mean a new turn: a plain question is answered by a yes or a no
 * alone. */
MUST_CHECK enum parking_found decision_settles(const struct parked_question *asked,
                                               struct str answer, struct err *e);

/* Whether `answer` says what was decided: `recorded` is the result that stands in the run. */
bool decision_repeats(struct str recorded, struct str answer, const struct yes_no_words *more);

/* The question about a call as its event, once more; its id lives in the arena. */
MUST_CHECK bool decision_ask_again(const struct parked_view *view, struct arena *arena,
                                   struct event *ret);

/* "approve", "refuse", "edit" */
struct str decision_name(enum decision_kind kind);

#endif
