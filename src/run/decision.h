/* decision: what a human answers when a tool call waits for him.
 *
 * Any wire brings one text. JSON says it exactly:
 *
 *     {"decision":"approve"}   {"decision":"refuse","reason":"..."}   {"approved":true}
 *     {"decision":"edit","args":{...}}   true   false
 *
 * and plain words say it as people do: "yes", "ok, go ahead", "approve" let the call be made;
 * everything else refuses it, and the words are the reason that the model reads.
 *
 * Memory   what it finds lives in the arena given.
 * Threads  none; values only.
 */
#ifndef WEIR_RUN_DECISION_H
#define WEIR_RUN_DECISION_H

#include "base/arena.h"
#include "base/err.h"

enum decision_kind { DECISION_APPROVE, DECISION_REFUSE, DECISION_EDIT };

struct decision {
    enum decision_kind kind;
    struct str args;   /* EDIT: one JSON object, in place of the model's */
    struct str reason; /* REFUSE: why, or empty */
};

/* errors  ERR_RESOURCE_EXHAUSTED the arena is full */
MUST_CHECK bool decision_read(struct str answer, struct arena *arena, struct decision *ret,
                              struct err *e);

struct parked_question;
struct json;

/* Whether the call that is asked about may be made with `args` instead.
 * errors  ERR_INVALID_ARGUMENT with the place that does not fit the tool's schema */
MUST_CHECK bool decision_args_fit(const struct parked_question *asked, struct json args,
                                  struct err *e);

/* Whether what is asked may be answered with these words: an edit of a call must fit its tool.
 * What a plain question is answered is free.
 * errors  as decision_args_fit() */
MUST_CHECK bool decision_fits(const struct parked_question *asked, struct str answer,
                              struct err *e);

/* "approve", "refuse", "edit" */
struct str decision_name(enum decision_kind kind);

#endif
