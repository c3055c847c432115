/* unkept: how to report something that the store did not keep, or may not have kept.
 *
 * A write is reported as refused only when the store has verified that nothing of it is there.
 * After a failed sync that takes a moment. If it cannot be verified in time, the answer says
 * so, and a repeat with the same key finds out which it was.
 *
 * Memory   the texts are constant.
 * Threads  any.
 * Source   checks.md K32.
 */
#ifndef WEIR_RECORD_UNKEPT_H
#define WEIR_RECORD_UNKEPT_H

#include "base/err.h"
#include "wire/event.h"

static inline bool unkept_unsure(const struct err *why) {
    return why->code == ERR_OUTCOME_UNKNOWN;
}

static inline struct str unkept_reason(const struct err *why) {
    return unkept_unsure(why) ? STR("STORE_OUTCOME_UNKNOWN") : STR("STORE_UNAVAILABLE");
}

/* `refused`: the message when it is certain that nothing was kept. */
static inline struct str unkept_message(const struct err *why, struct str refused) {
    return unkept_unsure(why)
               ? STR("the disk failed while this was stored, and whether it was kept is not "
                     "known; repeat it with the same idempotency key")
               : refused;
}

/* The message for an answer that was complete. */
#define UNKEPT_ANSWER "the answer could not be stored and does not count; ask again"

/* The terminal event in place of one that was not kept. */
static inline struct event unkept_failure(const struct err *why, struct str refused) {
    return (struct event){.kind = EVENT_FAILED,
                          .failed = {.code = ERR_UNAVAILABLE,
                                     .reason = unkept_reason(why),
                                     .message = unkept_message(why, refused)}};
}

#endif
