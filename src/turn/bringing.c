#include "turn/bringing.h"

#include "turn/turn.h"

#define BROUGHT_MAX_BYTES (16 * MIB)

bool run_keep_brought(struct run *run, const struct run_request *request) {
    struct buf bytes;
    run->request.brought.policy = request->brought;
    if (request->message_count == 0) return true;
    buf_init(&bytes, BROUGHT_MAX_BYTES);
    bool kept = import_append(request->messages, request->message_count, &bytes) &&
                arena_str(run->arena, buf_str(&bytes), &run->request.brought.list);
    buf_done(&bytes);
    return kept;
}

/* No rules have read what a caller brings. */
static void forget_readers(struct import *import) {
    for (size_t i = 0; i < import->count; i++) import->messages[i].heard_by = STR_EMPTY;
}

/* The first `known` messages are not new. Instructions hold for this turn whatever is known. */
static void leave_out_known(struct import *import, size_t known) {
    if (known && import->messages[0].instructions)
        import->messages[--known] = import->messages[0];
    import->messages += known;
    import->count -= known;
}

/* A turn inside another one stands and falls with it. */
static bool counts(const struct turn_record *record) {
    return !record->vain && !record->inside;
}

bool run_check_past(struct run *run) {
    const struct history *past = run->seen;
    uint64_t newest = run->request.newest_known;
    for (size_t i = 0; newest && i < past->record_count; i++) {
        if (past->records[i]->run <= newest || !counts(past->records[i])) continue;
        run_fail(run, ERR_INVALID_ARGUMENT, STR(RUN_SUPERSEDED),
                 STR("the conversation went on meanwhile; go on from its newest turn"));
        return false;
    }
    return true;
}

void run_precede(struct run *run) {
    bool whole = run->request.brought.list.len && run->request.brought.policy == BROUGHT_WHOLE;
    run->seen_hidden = !whole && !run->conversation.starts_anew;
}

void run_show_history(struct run *run) {
    const struct history *history = run->seen;
    if (!run->seen_hidden) return;
    run->seen_hidden = false;
    history_messages(history, conversation_precede(&run->conversation, history->message_count));
}

bool run_take_brought(struct run *run) {
    const struct conversation *c = &run->conversation;
    struct import *import = &run->request.brought.fresh;
    struct err e;
    if (run->request.brought.list.len || import_is_packed(run->request.text))
        run_show_history(run);
    const struct message *history = c->messages;
    if (!run->request.brought.list.len) {
        run->request.text = import_unpack(history, c->own_from, run->request.text);
        return true;
    }
    if (!import_decode(run->request.brought.list, run->arena, import, &e)) {
        run_fail_memory(run);
        return false;
    }
    forget_readers(import);
    if (run->request.brought.policy == BROUGHT_STRICT &&
        import_forks(history, c->own_from, import->messages, import->count)) {
        run_fail(run, ERR_ABORTED, STR("HISTORY_FORK"),
                 STR("the messages tell of another past than the session has; send its own "
                     "turns, or only what is new"));
        return false;
    }
    size_t results = import_results(history, c->own_from, import->messages, import->count);
    size_t known = results < import->count
                       ? results
                       : import_known(history, c->own_from, import->messages, import->count);
    leave_out_known(import, known);
    return true;
}

void run_append_brought(struct run *run) {
    bool whole = run->request.brought.policy == BROUGHT_WHOLE;
    struct event event = {
        .kind = EVENT_ITEM,
        .item = {.type = whole ? STR(BROUGHT_ITEM BROUGHT_ALL) : STR(BROUGHT_ITEM)}};
    struct buf bytes;
    if (!run->request.brought.list.len || run->ending_begun) return;
    buf_init(&bytes, BROUGHT_MAX_BYTES);
    bool fits = import_append(run->request.brought.fresh.messages,
                              run->request.brought.fresh.count, &bytes);
    event.item.bytes = buf_str(&bytes);
    if (fits) {
        run_append(run, &event);
    } else {
        run_fail_memory(run);
    }
    buf_done(&bytes);
}
