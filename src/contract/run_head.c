#include "contract/run_head.h"

#include "base/mem.h"
#include "stream/follow.h"

#include <stdlib.h>

struct run_head {
    struct follow *follow;
    run_head_fn *on_answer;
    void *ctx;
};

void run_head_cancel(struct run_head *head) {
    if (!head) return;
    follow_free(head->follow);
    free(head);
}

static void run_head_report(struct run_head *head, const struct event *started,
                            const struct err *failed) {
    run_head_fn *on_answer = head->on_answer;
    void *ctx = head->ctx;
    on_answer(started, failed, ctx);
    run_head_cancel(head);
}

static void run_head_missing(const struct err *failed, void *ctx) {
    run_head_report(ctx, NULL, failed);
}

/* --- a wire that ends with the first event -------------------------------------------------- */

static enum stream_verdict run_head_judge(const struct event *event, void *ctx) {
    (void)event;
    (void)ctx;
    return STREAM_FINISHES;
}

static void run_head_project(const struct event *event, enum close_frame frame, void *ctx) {
    (void)event;
    (void)frame;
    (void)ctx;
}

static void run_head_ended(struct close_ending ending, enum close_cause cause,
                           const struct event *last, void *ctx) {
    bool started = last && last->kind == EVENT_STARTED;
    (void)ending;
    (void)cause;
    run_head_report(ctx, started ? last : NULL, NULL);
}

static const struct stream_wire run_head_wire = {
    .judge = run_head_judge,
    .project = run_head_project,
    .ended = run_head_ended,
};

struct run_head *run_head_look(struct session_table *sessions, struct loop *loop, uint64_t run,
                               run_head_fn *on_answer, void *ctx) {
    struct run_head *head = MEM_NEW(struct run_head);
    *head = (struct run_head){.on_answer = on_answer, .ctx = ctx};
    head->follow =
        follow_new(&(struct follow_options){.loop = loop,
                                            .directory = session_table_directory(sessions),
                                            .store = session_table_store(sessions),
                                            .run = run,
                                            .mode = CLOSE_SINGLE,
                                            .wire = &run_head_wire,
                                            .missing = run_head_missing,
                                            .ctx = head});
    return head;
}
