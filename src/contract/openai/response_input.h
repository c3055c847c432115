/* response_input: what the caller of a response sent, as a list of input items.
 *
 * It is taken from the first events of its run: the text, or the messages that were new to the
 * session; or, for a response that begins with a person's answer, that answer.
 *
 * Memory   owns its arena.
 * Threads  none.
 * Source   OpenAI API reference, "List input items".
 */
#ifndef WEIR_CONTRACT_OPENAI_RESPONSE_INPUT_H
#define WEIR_CONTRACT_OPENAI_RESPONSE_INPUT_H

#include "conversation/import.h"
#include "wire/event.h"

struct response_input {
    struct arena *arena; /* NULL until there is something */
    struct import import;
    struct str approval_id;     /* of the answered question, or empty */
    uint64_t run, approval_seq; /* likewise */
    bool approved;
};

/* Which items are asked for. */
struct response_input_page {
    size_t limit; /* RESPONSE_INPUT_MAX at most */
    bool ascending;
    bool has_after;
    size_t after; /* the item that the page before ended with */
};

#define RESPONSE_INPUT_USUAL 20
#define RESPONSE_INPUT_MAX 100

void response_input_done(struct response_input *input);

/* Take an event of the response, from its first one on. */
void response_input_take(struct response_input *input, const struct event *event);

/* "in_<run>_<index>" */
MUST_CHECK bool response_input_read_id(struct str id, uint64_t run, size_t *ret_index);

/* {"object":"list","data":[...],"first_id","last_id","has_more"} */
void response_input_write(const struct response_input *input,
                          const struct response_input_page *page, struct json_writer *json);

#endif
