#include "provider/media_work.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

/* --- states ------------------------------------------------------------------------------- */

/* clang-format off */
const struct state media_states[MEDIA_STATE_COUNT] = {
    [MEDIA_ASKING]  = {"asking",  TO(MEDIA_WAITING) | TO(MEDIA_SHAPING) | TO(MEDIA_OVER)},
    [MEDIA_WAITING] = {"waiting", TO(MEDIA_ASKING) | TO(MEDIA_OVER)},
    [MEDIA_SHAPING] = {"shaping", TO(MEDIA_OVER)},
    [MEDIA_OVER]    = {"over",    0},
};
/* clang-format on */

/* The only function that writes call->state. */
void media_work_move(struct media_call *call, enum media_state next) {
    assert(states_allow(media_states, call->state, next));
    call->state = next;
    if (next == MEDIA_SHAPING || next == MEDIA_OVER) timer_stop(&call->deadline);
}

/* --- creation and release ----------------------------------------------------------------- */

static void media_work_call_free(struct media_call *call) {
    arena_free(call->arena);
    call->kind->free(call);
}

void media_work_enter(struct media_call *call) {
    call->inside++;
}

void media_work_leave(struct media_call *call) {
    call->inside--;
    if (call->state == MEDIA_OVER && !call->inside && !call->working)
        media_work_call_free(call);
}

static void media_work_finish(struct media_call *call) {
    task_cancel(&call->task);
    media_work_move(call, MEDIA_OVER);
    call->kind->stop(call);
}

void media_work_cancel(struct media_call *call) {
    media_work_enter(call);
    media_work_finish(call);
    if (call->working && job_cancel(&call->job)) call->working = false;
    media_work_leave(call);
}

/* --- failing ------------------------------------------------------------------------------ */

bool media_work_check_inputs(const struct media_request *request, struct err *e) {
    if (request->input_count == 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "there is no input to make a vector of");
    for (size_t i = 0; i < request->input_count; i++) {
        if (str_trim(request->inputs[i]).len == 0)
            return err_set(e, ERR_INVALID_ARGUMENT,
                           "input %zu (counted from 0) is empty; nothing can be made of it", i);
    }
    return true;
}

bool media_work_set(struct media_call *call, enum err_code code, const char *reason,
                    const char *format, ...) {
    char text[ERR_TEXT_BYTES + 4]; /* err_set() cuts it between characters */
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    call->failure.reason = reason;
    return err_set(&call->failure.why, code, "%s", text);
}

void media_work_set_late(struct media_call *call, const char *who) {
    struct buf limit;
    buf_init(&limit, ERR_TEXT_BYTES);
    units_append_duration(&limit, call->request.total_ms * 1000);
    media_work_set(call, ERR_DEADLINE_EXCEEDED, PROVIDER_TIMEOUT,
                   "%s was not done after " STR_FMT, who, STR_ARG(buf_str(&limit)));
    buf_done(&limit);
}

void media_work_fail(struct media_call *call) {
    media_work_enter(call);
    media_work_finish(call);
    struct reply_event ending =
        reply_event_failed(&call->failure.why, str_from(call->failure.reason));
    call->on_reply(&ending, call->ctx);
    media_work_leave(call);
}

static void on_task(void *ctx) {
    media_work_fail(ctx);
}

void media_work_fail_later(struct media_call *call) {
    loop_defer(call->loop, &call->task);
}

static void media_work_on_deadline(void *ctx) {
    struct media_call *call = ctx;
    call->kind->late(call);
    media_work_fail(call);
}

/* --- a copy of the request ---------------------------------------------------------------- */

static bool media_work_keep(struct media_call *call, struct str *text) {
    return text->len == 0 || arena_str(call->arena, *text, text);
}

static bool keep_inputs(struct media_call *call) {
    struct media_request *request = &call->request;
    if (request->input_count == 0) return true;
    struct str *inputs = arena_alloc(call->arena, request->input_count * sizeof(*inputs));
    if (!inputs) return false;
    for (size_t i = 0; i < request->input_count; i++) {
        inputs[i] = request->inputs[i];
        if (!media_work_keep(call, &inputs[i])) return false;
    }
    request->inputs = inputs;
    return true;
}

static bool keep_request(struct media_call *call) {
    struct media_request *request = &call->request;
    struct str *texts[] = {&request->model,   &request->text,    &request->language,
                           &request->voice,   &request->format,  &request->content_type,
                           &request->size,    &request->quality, &request->style,
                           &request->negative};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (!media_work_keep(call, texts[i])) return false;
    }
    return keep_inputs(call);
}

bool media_work_init(struct media_call *call, const struct media_work_kind *kind,
                     struct media *media, struct loop *loop,
                     const struct media_request *request, reply_event_fn *on_reply, void *ctx) {
    call->kind = kind;
    call->media = media;
    call->loop = loop;
    call->request = *request;
    call->on_reply = on_reply;
    call->ctx = ctx;
    call->start_ms = loop_now_ms(loop);
    call->arena = arena_new(MEDIA_WORK_MAX_BYTES);
    timer_init(&call->deadline, loop, media_work_on_deadline, call);
    task_init(&call->task, on_task, call);
    if (!keep_request(call))
        return media_work_set(call, ERR_TOO_LARGE, PROVIDER_REJECTED,
                              "the request is too large");
    if (request->total_ms) timer_start(&call->deadline, request->total_ms);
    return true;
}

/* --- shaping and reporting ---------------------------------------------------------------- */

static void shape(void *ctx) {
    struct media_call *call = ctx;
    call->failure.reason = NULL;
    if (!call->kind->shape(call)) assert(call->failure.reason);
}

static bool media_work_is_over(const struct media_call *call) {
    return call->state == MEDIA_OVER;
}

static void media_work_report(struct media_call *call, struct reply_event event) {
    if (!media_work_is_over(call)) call->on_reply(&event, call->ctx);
}

static void report_made(struct media_call *call) {
    const struct media_made *made = &call->made;
    for (size_t i = 0; i < made->artifact_count; i++)
        media_work_report(
            call, (struct reply_event){REPLY_ARTIFACT, .artifact = &made->artifacts[i]});
    if (made->text.at)
        media_work_report(call, (struct reply_event){REPLY_TEXT, .text = made->text});
    for (size_t i = 0; i < made->vector_count; i++) {
        struct reply_vector vector = {i, made->vectors[i].values, made->vectors[i].count};
        media_work_report(call, (struct reply_event){REPLY_VECTOR, .vector = &vector});
    }
    if (made->has_usage)
        media_work_report(call, (struct reply_event){REPLY_USAGE, .usage = &made->usage});
}

static void on_shaped(void *ctx) {
    struct media_call *call = ctx;
    call->working = false;
    media_work_enter(call);
    if (!media_work_is_over(call) && call->failure.reason) {
        media_work_fail(call);
    } else if (!media_work_is_over(call)) {
        report_made(call);
    }
    if (!media_work_is_over(call)) {
        struct str model = call->made.model.len ? call->made.model : call->request.model;
        media_work_finish(call);
        call->on_reply(&(struct reply_event){REPLY_DONE, .model = model}, call->ctx);
    }
    media_work_leave(call);
}

void media_work_shape(struct media_call *call) {
    if (call->state != MEDIA_SHAPING) media_work_move(call, MEDIA_SHAPING);
    call->working = true;
    job_start(&call->job, call->loop, shape, on_shaped, call);
}
