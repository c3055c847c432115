/* call_pairs: which result of a conversation answers which call, found in one walk.
 *
 * Ids recur in later replies, and some servers repeat one within a reply. Results with an id answer
 * the calls with that id in order: those of the newest reply that has one. Calls that follow each other
 * and are of one agent are of one reply.
 *
 *     call x, call x, result x, result x      first to first, second to second
 *     call x, text, call x, result x          the second has it, the first has none
 *
 * Memory   owns its array; call_pairs_done() ends it. It borrows the messages during the walk only.
 * Threads  none; values only.
 */
#ifndef WEIR_PROVIDER_CALL_PAIRS_H
#define WEIR_PROVIDER_CALL_PAIRS_H

#include "provider/provider.h"

#define CALL_PAIRS_NONE SIZE_MAX

struct call_pairs {
    size_t *of; /* by index: of a call, the index of its result; of a result, that of the newest
                   call before it with its id; CALL_PAIRS_NONE */
};

/* A call without an agent is `own`'s. */
void call_pairs_init(struct call_pairs *pairs, const struct message *messages, size_t count,
                     struct str own);
void call_pairs_done(struct call_pairs *pairs);

#endif
