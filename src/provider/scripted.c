#include "provider/scripted.h"

#include "base/mem.h"
#include "base/pool.h"
#include "base/utf8.h"
#include "provider/parts.h"
#include "wire/base64.h"
#include "wire/yes_no.h"

#include <assert.h>
#include <stdlib.h>

/* Limit for a text with its holes filled; a caller's text is no longer. */
#define RENDERED_MAX_BYTES (16 * MIB)

/* Added for each chunk, so that empty chunks use up a turn too. */
#define CHUNK_OVERHEAD_BYTES 16

#define PIECES_MAX 128 /* reported at once */

#define BYTES_A_TOKEN 4 /* a script counts no tokens */

struct scripted {
    struct provider base;
    const struct script *script;
};

struct provider_call {
    const struct scripted *provider;
    struct loop *loop;
    const struct provider_request *request;
    reply_event_fn *on_reply;
    void *ctx;

    struct task task;   /* plays before this turn ends */
    struct timer timer; /* plays when the next output is due */
    uint64_t due_us;    /* due time of the last output */
    size_t turn_bytes;  /* passed to the listener in this turn */
    bool paused;
    bool playing; /* scripted_play() is on the stack and will free the call */
    bool over;    /* no more callbacks */

    const struct script_scene *scene;
    const struct script_steps *steps;
    size_t step;
    bool begun;        /* the text of this step is in `text` */
    struct str text;   /* the rest of it; of a repeat, the whole text */
    size_t plain;      /* so many bytes at its front are ASCII; 0: not known */
    uint64_t left;     /* repeats to go */
    size_t bytes_left; /* of text and thinking, until the longest reply that is asked for */
    bool noted;        /* the reader knows */
    bool cut;          /* it was reached: only what the script counts follows */
    struct script_values values;
    struct str model;
    struct buf filled, args; /* text with its holes filled */
    struct buf input;        /* the user's text, if it has images */
};

static _Thread_local struct pool calls = POOL(sizeof(struct provider_call), 256);

static uint64_t now_us(const struct provider_call *call) {
    return loop_now_ms(call->loop) * 1000;
}

/* --- choosing the reply ------------------------------------------------------------------- */

/* Calls that the caller brought back with their results name no agent: they are of this one. */
static bool is_reply_of(const struct message *message, struct str agent) {
    if (message->role == MESSAGE_TOOL_CALL && message->agent.len == 0) return true;
    if (message->role != MESSAGE_AGENT && message->role != MESSAGE_TOOL_CALL) return false;
    return str_equal(message->agent, agent);
}

/* The user message that is answered. A turn that only brings results of the caller's tools goes
 * on with the one before it. */
static size_t asked_at(const struct provider_request *request) {
    size_t at = request->turn_start;
    while (at > 0 && request->messages[at].role != MESSAGE_USER) at--;
    return at;
}

/* Number of replies of this agent's model in this turn. Text and the tool calls after it are
 * one reply. */
static size_t replies_so_far(const struct provider_request *request) {
    size_t count = 0;
    bool inside = false;
    for (size_t i = asked_at(request) + 1; i < request->message_count; i++) {
        bool reply = is_reply_of(&request->messages[i], request->agent);
        if (reply && !inside) count++;
        inside = reply;
    }
    return count;
}

/* What a person said after the turn began: the answer to an approval request. */
static const struct message *newest_answer(const struct provider_request *request) {
    for (size_t i = request->message_count; i-- > asked_at(request) + 1;) {
        if (request->messages[i].role == MESSAGE_USER) return &request->messages[i];
    }
    return NULL;
}

/* The newest result of a tool. A transfer is a call as well, but has no useful result. */
static const struct message *newest_result(const struct provider_request *request) {
    for (size_t i = request->message_count; i-- > asked_at(request) + 1;) {
        const struct message *message = &request->messages[i];
        if (message->role != MESSAGE_TOOL_RESULT) continue;
        if (!str_equal(message->tool, STR("transfer_to_agent"))) return message;
    }
    return NULL;
}

/* A person answers an approval request in words, or by letting the tool run. */
static bool was_approved(const struct message *answer, const struct message *result) {
    if (answer) return yes_no_of(answer->text, NULL) == YES_NO_YES;
    return result && !result->error;
}

/* An image becomes a line of text for the script: "[image/png, 67 bytes]" or
 * "[https://...]". */
static void append_picture(const struct part *part, struct buf *out) {
    if (out->len) buf_append(out, STR("\n\n"));
    buf_append_byte(out, '[');
    if (part->url.kind == JSON_STRING) {
        json_text(part->url, out);
    } else {
        struct str data = str_head(str_skip(part->data.raw, 1), part->data.raw.len - 2);
        while (str_ends(data, STR("="))) data.len--;
        json_text(part->media_type, out);
        buf_printf(out, ", %zu bytes", base64_decoded_len(data.len));
    }
    buf_append_byte(out, ']');
}

static struct str input_of(struct provider_call *call, const struct message *message) {
    struct json_reader reader = parts_enter(message->parts);
    struct part part;
    if (message->parts.len == 0) return message->text;
    buf_append(&call->input, message->text);
    while (parts_next(&reader, &part)) {
        if (part.kind == PART_IMAGE) append_picture(&part, &call->input);
    }
    return buf_str(&call->input);
}

static void find_reply(struct provider_call *call) {
    const struct provider_request *request = call->request;
    const struct script *script = call->provider->script;
    const struct message *answer = newest_answer(request);
    const struct message *result = newest_result(request);
    assert(request->turn_start < request->message_count);

    call->values = (struct script_values){
        .input = input_of(call, &request->messages[asked_at(request)]),
        .result = result ? result->text : STR_EMPTY,
        .answer = answer ? answer->text : STR_EMPTY,
        .agent = request->agent,
        .args = STR_EMPTY,
    };
    call->model = script->model;
    if (call->model.len == 0) call->model = request->model;
    if (call->model.len == 0) call->model = STR("scripted");
    call->scene = script_scene_find(script, request->agent, call->values.input);
    if (call->scene)
        call->steps = script_reply_get(call->scene, replies_so_far(request),
                                       was_approved(answer, result));
}

/* --- endings -------------------------------------------------------------------------- */

static void provider_scripted_call_free(struct provider_call *call) {
    timer_stop(&call->timer);
    task_cancel(&call->task);
    buf_done(&call->filled);
    buf_done(&call->args);
    buf_done(&call->input);
    pool_give(&calls, call);
}

/* Once the ending is reported, the request belongs to the caller again and must not be
 * touched. */
static bool scripted_end(struct provider_call *call, const struct reply_event *ending) {
    call->over = true;
    call->on_reply(ending, call->ctx);
    return false;
}

static bool end_failed(struct provider_call *call, const struct err *why, struct str reason) {
    struct reply_event ending = reply_event_failed(why, reason);
    return scripted_end(call, &ending);
}

static bool end_without_reply(struct provider_call *call) {
    struct err why;
    if (call->scene) {
        err_set(&why, ERR_OUT_OF_RANGE,
                "the scene on line %u of the script is over; give it "
                "another reply, or remove 'once'",
                call->scene->line);
        return end_failed(call, &why, STR(SCRIPTED_ENDED));
    }
    err_set(&why, ERR_NOT_FOUND,
            "the script has no scene for agent '" STR_FMT "' and this text; add one without "
            "'match'",
            STR_ARG(str_head(call->request->agent, 80)));
    return end_failed(call, &why, STR(SCRIPTED_NO_SCENE));
}

/* --- text with holes ------------------------------------------------------------------ */

static bool scripted_fill(struct provider_call *call, const struct script_text *text,
                          struct buf *room, struct str *ret) {
    if (script_text_literal(text, ret)) return true;
    buf_clear(room);
    if (!script_text_render(text, &call->values, room)) return false;
    *ret = buf_str(room);
    return true;
}

static bool end_too_large(struct provider_call *call) {
    struct err why;
    err_set(&why, ERR_RESOURCE_EXHAUSTED, "the scripted reply grew past %zu bytes",
            (size_t)RENDERED_MAX_BYTES);
    return end_failed(call, &why, STR("AI_OUTPUT_INVALID"));
}

/* --- time ----------------------------------------------------------------------------- */

/* Whether `after_us` have passed since the last output was due; otherwise start the timer.
 * Output without a pace is due at once. */
static bool is_due(struct provider_call *call, uint64_t after_us) {
    uint64_t now = now_us(call);
    if (after_us == 0) {
        if (call->due_us < now) call->due_us = now;
        return true;
    }
    uint64_t due_us = call->due_us + after_us;
    if (due_us > now) {
        timer_start(&call->timer, (due_us - now + 999) / 1000);
        return false;
    }
    call->due_us = due_us;
    return true;
}

/* Whether this turn has room for more text. If not, continue in the next turn, after other
 * work. */
static bool has_turn(struct provider_call *call) {
    if (call->turn_bytes < SCRIPTED_TURN_BYTES) return true;
    timer_start(&call->timer, 0);
    return false;
}

/* --- steps ---------------------------------------------------------------------------- */

static bool next_step(struct provider_call *call) {
    call->step++;
    call->begun = false;
    return true;
}

static struct str cut_chunk(struct str text, const struct script_pace *pace) {
    if (pace->chunk == 0) return text;
    if (pace->bytes) return str_head(text, pace->chunk);
    return str_head(text, utf8_head(text, pace->chunk));
}

static size_t longest_bytes(const struct provider_request *request) {
    int64_t tokens = request->options ? request->options->output_tokens_max : 0;
    return tokens > 0 && (uint64_t)tokens < SIZE_MAX / BYTES_A_TOKEN
               ? (size_t)tokens * BYTES_A_TOKEN
               : SIZE_MAX;
}

/* False: nothing of it is left. */
static bool scripted_cut(struct provider_call *call, struct str *chunk) {
    if (call->bytes_left == SIZE_MAX) return true;
    call->cut = chunk->len > call->bytes_left;
    if (call->cut) *chunk = str_head(*chunk, utf8_cut(*chunk, call->bytes_left));
    call->bytes_left -= chunk->len;
    return chunk->len > 0 || !call->cut;
}

static void provider_scripted_give(struct provider_call *call, const struct script_step *step,
                                   struct str chunk) {
    if (!scripted_cut(call, &chunk)) return;
    call->turn_bytes += chunk.len + CHUNK_OVERHEAD_BYTES;
    enum reply_kind kind = step->kind == STEP_THINKING ? REPLY_THINKING : REPLY_TEXT;
    call->on_reply(&(struct reply_event){kind, .text = chunk}, call->ctx);
}

/* The chunks at the front of `plain` bytes of ASCII that this turn has room for: these are cut
 * without looking at the text. */
static size_t plain_pieces(const struct provider_call *call, uint64_t chunk, size_t plain) {
    if (chunk > plain) return 0;
    size_t each = (size_t)chunk + CHUNK_OVERHEAD_BYTES, count = plain / (size_t)chunk;
    size_t fit = (SCRIPTED_TURN_BYTES - call->turn_bytes + each - 1) / each;
    if (count > fit) count = fit;
    return count < PIECES_MAX ? count : PIECES_MAX;
}

/* Report all chunks that this turn has room for at once; of an empty text, the empty one. */
static void give_pieces(struct provider_call *call, const struct script_step *step) {
    uint32_t lens[PIECES_MAX];
    struct reply_pieces pieces = {.lens = lens};
    struct str text = call->text;
    if (!call->plain) call->plain = utf8_ascii_prefix(str_head(text, SCRIPTED_TURN_BYTES));
    size_t plain = call->plain;
    pieces.count = plain_pieces(call, step->pace.chunk, plain);
    for (size_t i = 0; i < pieces.count; i++) lens[i] = (uint32_t)step->pace.chunk;
    size_t len = pieces.count * (size_t)step->pace.chunk;
    call->text = str_skip(text, len);
    call->turn_bytes += len + pieces.count * CHUNK_OVERHEAD_BYTES;
    while (pieces.count == 0 || (call->text.len && pieces.count < PIECES_MAX &&
                                 call->turn_bytes < SCRIPTED_TURN_BYTES)) {
        struct str chunk = cut_chunk(call->text, &step->pace);
        call->text = str_skip(call->text, chunk.len);
        call->turn_bytes += chunk.len + CHUNK_OVERHEAD_BYTES;
        lens[pieces.count++] = (uint32_t)chunk.len;
        len += chunk.len;
    }
    pieces.ascii = len && len <= plain;
    call->plain -= len < plain ? len : plain;
    if (call->text.len == 0) next_step(call);
    call->on_reply(
        &(struct reply_event){REPLY_TEXT, .text = str_head(text, len), .pieces = &pieces},
        call->ctx);
}

static bool is_in_pieces(const struct provider_call *call, const struct script_step *step) {
    return call->bytes_left == SIZE_MAX && call->request->takes_pieces &&
           step->kind == STEP_TEXT && step->pace.chunk && step->pace.every_us == 0;
}

/* A step that is a single event. */
static bool give_event(struct provider_call *call, const struct reply_event *event) {
    next_step(call);
    call->on_reply(event, call->ctx);
    return true;
}

/* Each of these plays part of a step. False: wait for the timer, or the call is over. */

static bool play_text(struct provider_call *call, const struct script_step *step) {
    if (!call->begun && !scripted_fill(call, &step->text, &call->filled, &call->text))
        return end_too_large(call);
    if (!call->begun) call->plain = step->text.ascii;
    call->begun = true;
    if (!has_turn(call) || !is_due(call, step->pace.every_us)) return false;
    if (is_in_pieces(call, step)) {
        give_pieces(call, step);
        return true;
    }

    struct str chunk = cut_chunk(call->text, &step->pace);
    call->text = str_skip(call->text, chunk.len);
    if (call->text.len == 0) next_step(call);
    provider_scripted_give(call, step, chunk);
    return true;
}

static bool play_repeat(struct provider_call *call, const struct script_step *step) {
    if (!call->begun) {
        if (!scripted_fill(call, &step->text, &call->filled, &call->text))
            return end_too_large(call);
        call->left = step->times;
        call->begun = true;
    }
    if (call->left == 0) return next_step(call);
    if (!has_turn(call) || !is_due(call, step->pace.every_us)) return false;
    call->left--;
    provider_scripted_give(call, step, call->text);
    return true;
}

static bool play_wait(struct provider_call *call, const struct script_step *step) {
    return is_due(call, step->wait_us) && next_step(call);
}

static bool play_tool_call(struct provider_call *call, const struct script_step *step) {
    struct str args;
    if (!scripted_fill(call, &step->args, &call->args, &args)) return end_too_large(call);
    return give_event(call, &(struct reply_event){REPLY_TOOL_CALL, .call_id = step->id,
                                                  .tool = step->tool, .args = args});
}

static bool play_approval(struct provider_call *call, const struct script_step *step) {
    struct str args, question;
    if (!scripted_fill(call, &step->args, &call->args, &args)) return end_too_large(call);
    if (!scripted_fill(call, &step->text, &call->filled, &question)) return end_too_large(call);
    return give_event(call, &(struct reply_event){REPLY_APPROVAL, .call_id = step->id,
                                                  .text = question, .tool = step->tool,
                                                  .args = args});
}

static bool play_usage(struct provider_call *call, const struct script_step *step) {
    struct event_usage usage = step->usage;
    usage.model = call->model;
    if (call->cut && usage.completion > call->request->options->output_tokens_max)
        usage.completion = call->request->options->output_tokens_max;
    return give_event(call, &(struct reply_event){REPLY_USAGE, .usage = &usage});
}

static bool play_model(struct provider_call *call, const struct script_step *step) {
    call->model = step->model;
    return next_step(call);
}

static bool play_fail(struct provider_call *call, const struct script_step *step) {
    struct err why;
    struct str message;
    if (!scripted_fill(call, &step->text, &call->filled, &message)) return end_too_large(call);
    if (message.len == 0) message = STR("the provider failed, as its script says");
    err_set(&why, step->code, STR_FMT, STR_ARG(str_head(message, ERR_TEXT_BYTES)));
    return end_failed(call, &why, step->reason);
}

static bool play_stall(struct provider_call *call, const struct script_step *step) {
    (void)call, (void)step;
    return false;
}

static bool play_eof(struct provider_call *call, const struct script_step *step) {
    (void)step;
    struct err why;
    err_set(&why, ERR_UNAVAILABLE, "the provider's stream ended before its reply did");
    return end_failed(call, &why, STR("AI_STREAM_BROKEN"));
}

static bool play_bad_utf8(struct provider_call *call, const struct script_step *step) {
    next_step(call);
    provider_scripted_give(call, step, STR("\xC3\x28"));
    return true;
}

typedef bool play_fn(struct provider_call *call, const struct script_step *step);

static play_fn *const plays[] = {
    [STEP_TEXT] = play_text,
    [STEP_THINKING] = play_text,
    [STEP_REPEAT] = play_repeat,
    [STEP_WAIT] = play_wait,
    [STEP_TOOL_CALL] = play_tool_call,
    [STEP_APPROVAL] = play_approval,
    [STEP_USAGE] = play_usage,
    [STEP_MODEL] = play_model,
    [STEP_FAIL] = play_fail,
    [STEP_STALL] = play_stall,
    [STEP_EOF] = play_eof,
    [STEP_BAD_UTF8] = play_bad_utf8,
};

static void skip_what_was_cut(struct provider_call *call) {
    while (call->step < call->steps->count && call->steps->at[call->step].kind != STEP_USAGE &&
           call->steps->at[call->step].kind != STEP_MODEL)
        call->step++;
}

static bool play_next(struct provider_call *call) {
    if (!call->steps) return end_without_reply(call);
    if (call->cut) skip_what_was_cut(call);
    if (call->cut && call->step == call->steps->count && !call->noted) {
        call->noted = true;
        call->on_reply(&(struct reply_event){REPLY_NOTE, .text = STR(PROVIDER_CUT_NOTE)},
                       call->ctx);
        return true;
    }
    if (call->step == call->steps->count)
        return scripted_end(call, &(struct reply_event){REPLY_DONE, .model = call->model});
    const struct script_step *step = &call->steps->at[call->step];
    return plays[step->kind](call, step);
}

/* Play until an output is not due, the listener pauses or cancels, or the call is over. A
 * callback may cause any of these, so each is checked before the next output. */
static void scripted_play(void *ctx) {
    struct provider_call *call = ctx;
    call->playing = true;
    call->turn_bytes = 0;
    while (!call->over && !call->paused && play_next(call)) {
    }
    call->playing = false;
    if (call->over) provider_scripted_call_free(call);
}

/* --- the provider --------------------------------------------------------------------- */

static struct provider_call *scripted_start(struct provider *provider, struct loop *loop,
                                            const struct provider_request *request,
                                            reply_event_fn *on_reply, void *ctx) {
    struct provider_call *call = pool_zero(&calls);
    call->provider = CONTAINER_OF(provider, struct scripted, base);
    call->loop = loop;
    call->request = request;
    call->on_reply = on_reply;
    call->ctx = ctx;
    call->due_us = now_us(call);
    call->bytes_left = longest_bytes(request);
    buf_init(&call->filled, RENDERED_MAX_BYTES);
    buf_init(&call->args, RENDERED_MAX_BYTES);
    buf_init(&call->input, RENDERED_MAX_BYTES);
    task_init(&call->task, scripted_play, call);
    timer_init(&call->timer, loop, scripted_play, call);
    find_reply(call);
    loop_defer(loop, &call->task);
    return call;
}

static void scripted_pause(struct provider_call *call) {
    call->paused = true;
    timer_stop(&call->timer);
    task_cancel(&call->task);
}

static void scripted_resume(struct provider_call *call) {
    if (!call->paused) return;
    call->paused = false;
    if (!call->playing) loop_defer(call->loop, &call->task);
}

static void scripted_cancel(struct provider_call *call) {
    call->over = true;
    if (!call->playing) provider_scripted_call_free(call);
}

static void scripted_free(struct provider *provider) {
    free(CONTAINER_OF(provider, struct scripted, base));
}

static const struct provider_kind scripted_kind = {
    .name = "scripted",
    .start = scripted_start,
    .pause = scripted_pause,
    .resume = scripted_resume,
    .cancel = scripted_cancel,
    .free = scripted_free,
    .reads_turn_only = true,
};

struct provider *scripted_provider_new(struct str name, const struct script *script) {
    struct scripted *scripted = MEM_NEW(struct scripted);
    scripted->base.kind = &scripted_kind;
    scripted->base.name = name;
    scripted->script = script;
    return &scripted->base;
}
