/* fixture: one tool, called on a fake loop, and its result. */
#ifndef WEIR_TEST_TOOL_FIXTURE_H
#define WEIR_TEST_TOOL_FIXTURE_H

#include "helper/assert_str.h"

#include "schema/schema.h"
#include "tool/tool.h"

struct stage {
    struct loop *loop;
    struct tool *tool;
    size_t answers;
    bool failed;
    enum err_code code; /* of the failure */
    struct buf said;    /* the result, or the error's text */
};

static inline void stage_init(struct stage *stage, struct tool *tool) {
    *stage = (struct stage){.loop = loop_new_fake(), .tool = tool};
    buf_init(&stage->said, MIB);
}

static inline void stage_done(struct stage *stage) {
    tool_free(stage->tool);
    buf_done(&stage->said);
    loop_free(stage->loop);
}

static inline void stage_hears(struct str result, const struct err *failed, void *ctx) {
    struct stage *stage = ctx;
    stage->answers++;
    stage->failed = failed != NULL;
    stage->code = failed ? failed->code : ERR_NONE;
    buf_append(&stage->said, failed ? err_text(failed) : result);
}

/* The answer never comes before start has returned. */
static inline struct tool_call *stage_call(struct stage *stage, const char *args) {
    struct str copy = exact_copy(str_from(args));
    struct tool_request request = {.call_id = STR("c1"), .args = copy, .agent = STR("a")};
    buf_clear(&stage->said);
    stage->answers = 0;
    struct tool_call *call =
        stage->tool->kind->start(stage->tool, stage->loop, &request, stage_hears, stage);
    assert_int_equal(stage->answers, 0);
    free((void *)copy.at);
    return call;
}

static inline void stage_said(struct stage *stage, bool failed, const char *expected) {
    assert_int_equal(stage->answers, 1);
    assert_str(buf_str(&stage->said), expected);
    assert_int_equal(stage->failed, failed);
}

static inline bool stage_accepts(const struct stage *stage, const char *args) {
    struct err e;
    struct json value;
    assert_true(json_read(str_from(args), &value, &e));
    return schema_check(stage->tool->schema, value, &e);
}

#endif
