/* decision: a human's answer when a tool call waits for approval.
 *
 * Every wire delivers one text. JSON is exact:
 *
 *     {"decision":"approve"}   {"decision":"refuse","reason":"..."}   {"approved":true}
 *     {"decision":"edit","args":{...}}   true   false
 *
 * A word that plainly means yes or no also decides (wire/yes_no.h). Anything else decides
 * nothing and leaves the question open. Where the question is asked again, the words are kept
 * for the model in an EVENT_ITEM of type ASIDE_ITEM beside the question.
 *
 * Memory   results live in the caller's arena.
 * Threads  none; values only.
 * Source   checks.md K29.
 */
#ifndef WEIR_SESSION_DECISION_H
#define WEIR_SESSION_DECISION_H

#include "base/arena.h"
#include "conversation/conversation.h" /* ASIDE_ITEM, APPROVAL_ID */
#include "session/pending_approvals.h"
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

/* Whether the call in question may be made with `args` instead.
 * errors  ERR_INVALID_ARGUMENT with the place that does not fit the tool's schema */
MUST_CHECK bool decision_args_fit(const struct pending_question *asked, struct json args,
                                  struct err *e);

/* Whether these words answer the question: PENDING_TAKEN, PENDING_REFUSED (an edited call does
 * not fit its tool) or PENDING_UNDECIDED (they decide nothing; `e` says which words would). A
 * plain question takes any answer. */
MUST_CHECK enum pending_found decision_fits(const struct pending_question *asked,
                                            struct str answer, struct err *e);

/* The same where the words may also begin a new turn: only a yes or a no then answers a plain
 * question. */
MUST_CHECK enum pending_found decision_settles(const struct pending_question *asked,
                                               struct str answer, struct err *e);

/* Whether `answer` repeats the decision in `recorded`, the result that the run has. */
bool decision_repeats(struct str recorded, struct str answer, const struct yes_no_words *more);

/* Make the event that asks about the call again; its id lives in the arena. */
MUST_CHECK bool decision_ask_again(const struct pending_view *view, struct arena *arena,
                                   struct event *ret);

/* "approve", "refuse", "edit" */
struct str decision_name(enum decision_kind kind);

#endif
