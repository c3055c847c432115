/* Whatever stands in a store: a workflow is folded from it the same however it is cut, and what
 * it shows can be encoded. */
#include "contract/nimi/job/workflow_fold.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define EVENTS_MAX 64
#define SHOWN_MAX_BYTES (64 * MIB)

static void show(const struct workflow_fold *fold, struct buf *out) {
    struct nimi_get_workflow_response reply;
    struct arena *arena = arena_new(SHOWN_MAX_BYTES);
    buf_init(out, SHOWN_MAX_BYTES);
    assert(workflow_fold_reply(fold, arena, &reply));
    assert(pb_encode(&nimi_get_workflow_response_table, &reply, out));
    arena_free(arena);
}

static void tell(const struct workflow_fold *fold) {
    struct buf out;
    buf_init(&out, SHOWN_MAX_BYTES);
    assert(workflow_fold_event(fold, &out));
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str whole = str_of((const char *)data, size), rest = whole;
    struct workflow_fold one, other;
    struct event event = {0};
    struct buf first, second;
    struct err e;
    size_t count = 0;
    workflow_fold_init(&one, RUN_FOLD_WHOLE);
    while (rest.len && count < EVENTS_MAX && event_decode(&rest, &event, &e)) {
        uint64_t before = one.run.sequence;
        event.seq = ++count;
        bool told = workflow_fold_take(&one, &event);
        assert(one.run.sequence == before + told);
        if (told) tell(&one);
        if (event_is_terminal(event.kind)) break; /* nothing follows in a journal */
    }
    struct str read = str_head(whole, whole.len - rest.len);
    const struct store_section section = {.run = 1, .first_seq = 1, .events = read};
    workflow_fold_init(&other, RUN_FOLD_WHOLE);
    assert(run_fold_sections(&other.run, &section, 1));
    assert(one.run.foreign == other.run.foreign && one.run.sequence == other.run.sequence);
    if (run_fold_is_shown(&one.run)) {
        show(&one, &first);
        show(&other, &second);
        assert(str_equal(buf_str(&first), buf_str(&second)));
        buf_done(&first);
        buf_done(&second);
    }
    run_fold_done(&one.run);
    run_fold_done(&other.run);
    return 0;
}
