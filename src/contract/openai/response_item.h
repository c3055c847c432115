/* response_item: one item of a response's output. Private to this contract.
 *
 * Memory   owns its texts.
 * Threads  none.
 */
#ifndef WEIR_CONTRACT_OPENAI_RESPONSE_ITEM_H
#define WEIR_CONTRACT_OPENAI_RESPONSE_ITEM_H

#include "contract/openai/response.h"

enum response_item_kind {
    ITEM_MESSAGE,
    ITEM_REFUSAL, /* a message that says why there is no answer */
    ITEM_REASONING,
    ITEM_FUNCTION_CALL,
    ITEM_MCP_CALL,
    ITEM_APPROVAL,
    ITEM_KIND_COUNT,
};

struct response_item {
    enum response_item_kind kind;
    bool open;             /* it grows, or waits for its result */
    bool failed;           /* mcp_call */
    struct buf text;       /* of a message, a refusal, a reasoning; arguments of a call */
    struct buf result;     /* of an mcp_call */
    struct text call_id;   /* as the run calls it */
    struct text name, who; /* of the tool; the agent */
    uint64_t seq;          /* ITEM_APPROVAL: of the question */
};

/* Append an item; its index is response->item_count - 1. */
struct response_item *response_item_add(struct response *response,
                                        enum response_item_kind kind);

void response_item_done(struct response_item *item);

/* "item_id" and "output_index" */
void response_item_write_place(const struct response *response, size_t index,
                               struct json_writer *json);

/* The item as it is now; `empty`: without what its deltas bring. */
void response_item_write(const struct response *response, size_t index, bool empty,
                         struct json_writer *json);

/* {"type":"output_text",...}, {"type":"refusal",...} */
void response_item_write_part(const struct response_item *item, bool empty,
                              struct json_writer *json);

#endif
