/* blocks: the content of a message, as events of a stream or as one array.
 *
 *     text "a", text "b", call      start text ─▶ delta a ─▶ delta b ─▶ stop ─▶ start tool_use ...
 *                                   or [{"type":"text","text":"ab"},{"type":"tool_use",...}]
 *
 * Memory   owns what it keeps; blocks_done() ends it. `call` is borrowed.
 * Threads  the call's loop.
 */
#ifndef WEIR_CONTRACT_ANTHROPIC_BLOCKS_H
#define WEIR_CONTRACT_ANTHROPIC_BLOCKS_H

#include "route/route.h"
#include "wire/event.h"

enum block_kind { BLOCK_NONE, BLOCK_TEXT, BLOCK_THINKING };

struct blocks {
    struct route_call *call; /* of a stream; NULL: the array is gathered */
    enum block_kind open;
    size_t count;     /* begun so far */
    struct buf text;  /* of the open block, if gathered */
    struct buf array; /* the items so far, if gathered */
};

void blocks_init(struct blocks *blocks);
void blocks_done(struct blocks *blocks);

/* Append to a block of this kind; another one that is open ends. */
void blocks_add(struct blocks *blocks, enum block_kind kind, struct str text);

/* The same for each of these texts, encoded as a journal has them. */
void blocks_add_texts(struct blocks *blocks, struct str texts);

/* A whole block: `event` is an EVENT_TOOL_CALL. */
void blocks_add_call(struct blocks *blocks, const struct event *event);

/* End the open one. */
void blocks_end(struct blocks *blocks);

#endif
