/* Any path, template or condition (the first line), with any slots (the rest, JSON): an accepted
 * path and condition can be followed, a template stays within its limit, and what flows on is
 * JSON that becomes a Struct. */
#include "contract/nimi/job/workflow_node.h"
#include "contract/nimi/job/workflow_value.h"

#include <assert.h>
#include <stdint.h>

#define OUT_MAX_BYTES (64 * KIB)

static void flow_on(struct json value) {
    struct json again;
    struct err e;
    struct buf out;
    struct arena *arena = arena_new(16 * MIB);
    buf_init(&out, 4 * value.raw.len + KIB);
    if (value.kind != JSON_NONE) {
        assert(workflow_output_named(value.raw, STR("output"), &out));
        assert(json_read(buf_str(&out), &again, &e) && again.kind == JSON_OBJECT);
        assert(workflow_struct(value, arena));
    }
    buf_done(&out);
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str rest, first = str_split(str_of((const char *)data, size), '\n', &rest);
    struct json slots;
    struct err e;
    struct buf out;
    if (!rest.at || !json_read(rest, &slots, &e)) return 0;
    struct json found = workflow_path_at(slots, first);
    assert(workflow_path_is(first) || found.kind == JSON_NONE);
    flow_on(found);
    if (!workflow_condition_is(first)) assert(!workflow_condition_holds(first, slots));
    workflow_condition_holds(first, slots);
    buf_init(&out, OUT_MAX_BYTES);
    bool fits = workflow_expand(first, slots, &out);
    assert(fits == buf_ok(&out));
    buf_done(&out);
    return 0;
}
