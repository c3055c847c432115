/* response: the items and the typed events of a response, folded from the events of a run.
 *
 *     text of one reply        message          output_item.added, content_part.added,
 *                                               output_text.delta ..., ...done
 *     reasoning that is shown  reasoning        reasoning_summary_text.delta ...
 *     a call of the caller's   function_call    function_call_arguments.delta, .done
 *     a call of the agent's    mcp_call         shown by clients, never executed
 *     a question about a call  message, and mcp_approval_request
 *
 * The fold depends on the events alone, so a response that is read again has the same items,
 * ids and sequence numbers.
 *
 * Memory   owns its items, each at most as large as a reply.
 * Threads  none.
 * Source   OpenAI API reference, "Responses" and "Streaming events".
 */
#ifndef WEIR_CONTRACT_OPENAI_RESPONSE_H
#define WEIR_CONTRACT_OPENAI_RESPONSE_H

#include "contract/completion.h"

struct response_item;

struct response {
    struct completion *completion; /* the turn's own; its run, model and usage */
    uint64_t after_seq;            /* of the run, where this response begins */
    bool background;
    struct text previous,
        metadata;        /* the id of the response before it; a JSON object; or empty */
    struct text options; /* that the caller set, as EVENT_STARTED has them */
    struct response_item *items;
    size_t item_count, item_room;
    bool begun; /* response.created is out */
    /* While frames are wanted. */
    struct buf *out;
    uint64_t sequence;       /* the number of the next frame */
    uint64_t first_sequence; /* frames before it have been seen already */
};

void response_init(struct response *response, struct completion *completion);
void response_done(struct response *response);

/* "resp_<run>", or "resp_<run>_<seq>" where it begins after a person's answer. */
void response_append_id(const struct response *response, struct buf *out);
MUST_CHECK bool response_read_id(struct str id, uint64_t *ret_run, uint64_t *ret_after_seq);

/* Take one event, which completion_note() has seen, and append its frames to response->out,
 * unless that is NULL. */
void response_fold(struct response *response, const struct event *event, bool shows_thinking);

/* The same of the text alone. */
void response_fold_text(struct response *response, struct str text);

/* The response object. `last` is the event that ended it; NULL: it goes on. */
void response_write(const struct response *response, const struct event *last,
                    struct json_writer *json);

/* For a run that was cut off from outside: response.failed. */
void response_fail(struct response *response, struct str code, struct str message);

#endif
