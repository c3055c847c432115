/* Whatever a human answers, a call is made only for what says yes again when it is read again:
 * a decision is one, whatever stands around it, and never what asks. */
#include "session/decision.h"

#include "base/utf8.h"
#include "wire/json.h"

#include <assert.h>

static enum decision_kind read(struct str answer) {
    struct arena *arena = arena_new(4 * answer.len + 4 * KIB);
    struct decision decision;
    struct err e;
    assert(decision_read(answer, NULL, arena, &decision, &e));
    if (decision.kind == DECISION_EDIT) {
        struct json args;
        assert(json_read(decision.args, &args, &e) && args.kind == JSON_OBJECT);
    } else {
        assert(decision.args.len == 0);
    }
    assert(decision.kind == DECISION_REFUSE || decision.reason.len == 0);
    arena_free(arena);
    return decision.kind;
}

/* As the run records it. */
static bool repeats(struct str answer, enum decision_kind kind) {
    struct buf recorded;
    buf_init(&recorded, KIB);
    buf_printf(&recorded, "{\"decision\":\"" STR_FMT "\"}", STR_ARG(decision_name(kind)));
    bool same = decision_repeats(buf_str(&recorded), answer, NULL);
    buf_done(&recorded);
    return same;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str answer = str_of(data, size);
    enum decision_kind kind = read(answer);
    const struct pending_question call = {.guards = STR("c1"), .tool = STR("t")};
    struct err e;
    enum pending_found found = decision_fits(&call, answer, &e);
    assert((found == PENDING_TAKEN) == (kind != DECISION_NONE));
    assert(kind == DECISION_NONE || (utf8_valid(answer) && str_trim(answer).len));
    if (kind == DECISION_APPROVE)
        assert(repeats(answer, kind) && !repeats(answer, DECISION_REFUSE));

    struct json json;
    struct buf around;
    buf_init(&around, size + 16);
    buf_append(&around, STR(" \n"));
    buf_append(&around, answer);
    buf_append(&around, STR(" "));
    assert(size > YES_NO_MAX_BYTES - 3 || read(buf_str(&around)) == kind);
    buf_clear(&around);
    buf_append(&around, answer);
    buf_append(&around, STR("?"));
    if (!json_read(buf_str(&around), &json, &e))
        assert(read(buf_str(&around)) == DECISION_NONE);
    buf_done(&around);
    return 0;
}
