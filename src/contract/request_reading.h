/* request_reading: the body of a request to run an agent, while it is read. What is wrong is named by its
 * member: "stream: must be true or false, not a number".
 *
 * Memory   results are views into the body or lie in the arena.
 * Threads  none.
 */
#ifndef WEIR_CONTRACT_REQUEST_READING_H
#define WEIR_CONTRACT_REQUEST_READING_H

#include "contract/caller_options.h"
#include "contract/guest_turn.h"
#include "conversation/import.h"
#include "wire/json.h"

struct request_reading {
    struct arena *arena;
    struct err *e;
    struct str param; /* the member that was refused: a constant, or in the arena; or empty */
    uint64_t approval_run, approval_seq; /* as struct guest_request has them */
};

/* Refuse the member `param`, a constant. Returns false. */
PRINTF_LIKE(3, 4)
bool request_refuse(struct request_reading *reading, const char *param, const char *format,
                    ...);
bool request_too_large(struct request_reading *reading);

/* Read a member that may be absent or null; *ret stays as it is then. */
MUST_CHECK bool request_take_text(struct request_reading *reading, struct json value,
                                  const char *param, struct str *ret);
MUST_CHECK bool request_take_bool(struct request_reading *reading, struct json value,
                                  const char *param, bool *ret);

/* Read what is said of the reply, by the names of this table. */
MUST_CHECK bool request_take_options(struct request_reading *reading, struct json body,
                                     const struct caller_option *table, size_t count,
                                     struct guest_request *ret);

/* Read the member `tools`, each of its items with `take`. */
typedef bool request_tool_fn(struct request_reading *reading, struct json from, size_t index,
                             struct tool_offer *ret);
MUST_CHECK bool request_take_tool_list(struct request_reading *reading, struct json list,
                                       request_tool_fn *take, struct guest_request *ret);

/* Put the caller's instructions before its messages: they hold for this turn, and no later one
 * is shown them. Blank ones are none. */
MUST_CHECK bool request_take_instructions(struct request_reading *reading, struct str text,
                                          struct guest_request *ret);

/* The whole conversation as it was read (a false `reads`: it could not be), after what the application
 * says (may be empty). If the last message is the user's, it is what is asked. */
MUST_CHECK bool request_take_conversation(struct request_reading *reading, bool reads,
                                          const struct import *import, struct str first,
                                          struct guest_request *ret);

#endif
