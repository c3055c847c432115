/* unkept: what is said of something that the store did not keep, or perhaps did.
 *
 * "Refused" is said only when the store has shown that nothing of it is there. After a sync
 * that failed that takes a moment; where it could not be shown in time the answer says so, and
 * the same key then finds whichever it was.
 *
 * Memory   the texts are constant.
 * Threads  any.
 * Source   checks.md K32.
 */
#ifndef WEIR_RUN_UNKEPT_H
#define WEIR_RUN_UNKEPT_H

#include "base/err.h"
#include "wire/event.h"

static inline bool unkept_unsure(const struct err *why) {
    return why->code == ERR_OUTCOME_UNKNOWN;
}

static inline struct str unkept_reason(const struct err *why) {
    return unkept_unsure(why) ? STR("STORE_OUTCOME_UNKNOWN") : STR("STORE_UNAVAILABLE");
}

/* `refused`: what is said when it is surely not there. */
static inline struct str unkept_message(const struct err *why, struct str refused) {
    return unkept_unsure(why)
               ? STR("the disk failed while this was stored, and whether it was kept is not "
                     "known; repeat it with the same idempotency key")
               : refused;
}

/* What is said of an answer that came whole. */
#define UNKEPT_ANSWER "the answer could not be stored and does not count; ask again"

/* The last event in place of one that was not kept. */
static inline struct event unkept_failure(const struct err *why, struct str refused) {
    return (struct event){.kind = EVENT_FAILED,
                          .failed = {.code = ERR_UNAVAILABLE,
                                     .reason = unkept_reason(why),
                                     .message = unkept_message(why, refused)}};
}

#endif
