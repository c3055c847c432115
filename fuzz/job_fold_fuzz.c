/* Whatever stands in a store: a job is folded from it the same however it is cut, what it shows
 * can be encoded, and once it is over nothing is told any more. */
#include "contract/nimi/job/job_fold.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define EVENTS_MAX 64
#define SHOWN_MAX_BYTES (64 * MIB)

static void show(const struct job_fold *fold, struct buf *out) {
    const struct nimi_scenario_job_event event = job_fold_event(fold);
    buf_init(out, SHOWN_MAX_BYTES);
    assert(pb_encode(&nimi_scenario_job_event_table, &event, out));
}

static void assert_same(const struct job_fold *one, const struct job_fold *other) {
    struct buf first, second;
    assert(one->run.foreign == other->run.foreign && one->run.sequence == other->run.sequence);
    if (one->run.foreign) return;
    show(one, &first);
    show(other, &second);
    assert(str_equal(buf_str(&first), buf_str(&second)));
    buf_done(&first);
    buf_done(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str whole = str_of(data, size), rest = whole;
    struct job_fold one, other;
    struct event event = {0};
    struct err e;
    size_t count = 0;
    job_fold_init(&one, RUN_FOLD_WHOLE);
    while (rest.len && count < EVENTS_MAX && event_decode(&rest, &event, &e)) {
        uint64_t before = one.run.sequence;
        event.seq = ++count;
        bool told = job_fold_take(&one, &event);
        assert(one.run.sequence == before + told);
        if (event_is_terminal(event.kind)) break; /* nothing follows in a journal */
    }
    struct str read = str_head(whole, whole.len - rest.len);
    const struct store_section section = {.run = 1, .first_seq = 1, .events = read};
    job_fold_init(&other, RUN_FOLD_WHOLE);
    assert(run_fold_sections(&other.run, &section, 1));
    assert_same(&one, &other);
    run_job_is(&section, 1);
    run_fold_done(&one.run);
    run_fold_done(&other.run);
    return 0;
}
