#include "tool/request.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "base/units.h"
#include "base/utf8.h"
#include "loop/slots.h"
#include "tool/get.h"
#include "tool/request_write.h"
#include "tool/template.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define WAITING_MAX 10000     /* calls that may wait */
#define ERROR_MAX_BYTES 16384 /* of a refusal's body */
#define EXCERPT_BYTES 256     /* of that body, shown to the model */
#define ESCAPED_BYTES 6       /* the longest JSON escape of one byte */
#define RESULT_REST_BYTES 64  /* of a result, besides the output */
#define ARENA_EXTRA_BYTES (64 * KIB)

/* References: one of the tool, and one of each call, because the mail of a slot may arrive
 * late. */
struct request_tool {
    struct tool base;
    atomic_uint refs;
    struct schema *schema;
    struct slots *slots;
    struct arena *arena;            /* holds the options */
    struct request_options options; /* a copy */
};

struct tool_call {
    struct request_tool *tool; /* a reference */
    struct loop *loop;
    struct slot slot;
    struct task begin; /* starts the call with its slot, or reports a refusal */
    bool abandoned;    /* freed when the slot's mail arrives */
    bool written;      /* `text` holds the request */
    struct request_text text;
    struct get get;
    struct err why; /* why it cannot be sent */
    tool_done_fn *done;
    void *ctx;
};

/* --- the end ------------------------------------------------------------------------------ */

static void wipe(struct str text) {
    if (text.len) explicit_bzero((char *)(uintptr_t)text.at, text.len); /* our own copy */
}

static void request_unref(struct request_tool *tool) {
    if (atomic_fetch_sub(&tool->refs, 1) != 1) return;
    for (size_t i = 0; i < tool->options.secret_count; i++)
        wipe(tool->options.secrets[i].value);
    wipe(tool->options.key);
    schema_free(tool->schema);
    slots_free(tool->slots);
    arena_free(tool->arena);
    free(tool);
}

static void request_call_free(struct tool_call *call) {
    if (call->written) request_text_done(&call->text);
    request_unref(call->tool);
    free(call);
}

/* If the slot's mail is still to come, it frees the call. */
static void request_call_leave(struct tool_call *call) {
    call->abandoned = true;
    task_cancel(&call->begin);
    get_end(&call->get);
    if (slots_withdraw(&call->slot) || slots_leave(&call->slot)) request_call_free(call);
}

/* The call must not be touched after `done`. */
static void call_answer(struct tool_call *call, struct str result, const struct err *failed) {
    tool_done_fn *done = call->done;
    void *ctx = call->ctx;
    request_call_leave(call);
    done(failed ? STR_EMPTY : result, failed, ctx);
}

/* --- the answer --------------------------------------------------------------------------- */

static bool say_too_long(const struct tool_call *call, struct err *e) {
    const struct request_options *options = &call->tool->options;
    char room[32];
    struct buf limit = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    units_append_size(&limit, options->output_max_bytes);
    return err_set(e, ERR_EFFECT_UNKNOWN,
                   "tool '" STR_FMT "': its server answered with more than " STR_FMT
                   "; the setting tools." STR_FMT ".output allows more",
                   STR_ARG(options->name), STR_ARG(buf_str(&limit)), STR_ARG(options->name));
}

/* The log gets the client's message; the model gets less. */
static bool say_lost(const struct tool_call *call, const struct err *failed, struct err *e) {
    const struct request_options *options = &call->tool->options;
    struct str name = options->name;
    struct buf shown;
    buf_init(&shown, KIB);
    tool_output_hide(err_text(failed), options->secrets, options->secret_count, &shown);
    log_often(LOG_WARNING, "tool '" STR_FMT "': " STR_FMT, STR_ARG(name),
              STR_ARG(buf_str(&shown)));
    buf_done(&shown);
    if (failed->code == ERR_PERMISSION_DENIED)
        return err_set(e, ERR_PERMISSION_DENIED,
                       "tool '" STR_FMT "': its server has no public address", STR_ARG(name));
    if (call->get.stage == HTTP_CONNECTING)
        return err_set(e, ERR_UNAVAILABLE, "tool '" STR_FMT "': its server cannot be reached",
                       STR_ARG(name));
    return err_set(e, ERR_EFFECT_UNKNOWN,
                   "tool '" STR_FMT "': its server did not answer to the end", STR_ARG(name));
}

/* Whether the request may have had its effect: after 503 it had none, and 307 and 308 ask for it
 * elsewhere. The other redirects are how some servers answer what they have done. */
static bool may_have_acted(unsigned status) {
    return (status < 400 && status != 307 && status != 308) || (status >= 500 && status != 503);
}

static bool say_status(const struct tool_call *call, struct err *e) {
    const struct request_options *options = &call->tool->options;
    unsigned status = call->get.status;
    bool unsure = may_have_acted(status);
    struct buf hidden, shown;
    struct str text = str_trim(buf_str(&call->get.body));
    buf_init(&hidden, SIZE_MAX);
    buf_init(&shown, (size_t)4 * EXCERPT_BYTES);
    tool_output_hide(str_head(text, ERROR_MAX_BYTES), options->secrets, options->secret_count,
                     &hidden);
    text = str_head(buf_str(&hidden), EXCERPT_BYTES);
    utf8_append_repaired(&shown, str_head(text, text.len - utf8_pending(text)));
    err_set(e, unsure ? ERR_EFFECT_UNKNOWN : ERR_UNKNOWN,
            "tool '" STR_FMT "': its server answered %u%s%s" STR_FMT, STR_ARG(options->name),
            status, status < 400 ? ", and a redirect is not followed" : "",
            shown.len ? ": " : "", STR_ARG(buf_str(&shown)));
    buf_done(&hidden);
    buf_done(&shown);
    return false;
}

/* An empty body becomes an empty text, even where JSON was expected. */
static bool request_write_answer(const struct tool_call *call, struct buf *out, struct err *e) {
    const struct request_options *options = &call->tool->options;
    struct buf hidden;
    buf_init(&hidden, SIZE_MAX);
    tool_output_hide(buf_str(&call->get.body), options->secrets, options->secret_count,
                     &hidden);
    enum tool_output_form form = hidden.len ? options->form : TOOL_OUTPUT_TEXT;
    bool written = tool_output_write(buf_str(&hidden), form, options->pick, out, e) ||
                   err_add(e, "tool '" STR_FMT "'", STR_ARG(options->name));
    buf_done(&hidden);
    return written;
}

static bool request_write_result(const struct tool_call *call, const struct err *failed,
                                 struct buf *out, struct err *e) {
    if (failed) return say_lost(call, failed, e);
    if (call->get.status >= 300) return say_status(call, e);
    if (call->get.truncated) return say_too_long(call, e);
    return request_write_answer(call, out, e);
}

static void request_on_done(const struct err *failed, void *ctx) {
    struct tool_call *call = ctx;
    struct buf result;
    struct err why;
    buf_init(&result, ESCAPED_BYTES * call->get.body.len + RESULT_REST_BYTES);
    bool done = request_write_result(call, failed, &result, &why);
    call_answer(call, buf_str(&result), done ? NULL : &why);
    buf_done(&result);
}

/* --- starting ----------------------------------------------------------------------------- */

static void send_request(void *ctx) {
    struct tool_call *call = ctx;
    const struct request_options *options = &call->tool->options;
    struct http_request request = {.method = options->method,
                                   .url = buf_str(&call->text.url),
                                   .headers = call->text.headers,
                                   .header_count = call->text.header_count,
                                   .body = buf_str(&call->text.body),
                                   .reach =
                                       options->public_only ? HTTP_PUBLIC_ONLY : HTTP_ANYWHERE,
                                   .once = !options->idempotent};
    get_start(&call->get, options->pool, call->loop, &request, options->output_max_bytes, NULL,
              request_on_done, call);
}

static void request_on_slot(void *ctx) {
    struct tool_call *call = ctx;
    if (call->abandoned) {
        request_call_free(call);
    } else {
        send_request(call);
    }
}

static void request_on_refused(void *ctx) {
    struct tool_call *call = ctx;
    struct err why = call->why;
    call_answer(call, STR_EMPTY, &why);
}

/* Write the request, and ask for a slot. */
static enum slots_answer request_enter(struct tool_call *call,
                                       const struct tool_request *request) {
    const struct request_options *options = &call->tool->options;
    enum slots_answer answer = SLOTS_FULL;
    call->written = true;
    if (request_write(options, request, &call->text, &call->why)) {
        answer = slots_enter(call->tool->slots, STR_EMPTY, SLOTS_NO_LIMIT, &call->slot);
        if (answer == SLOTS_FULL)
            err_set(&call->why, ERR_RESOURCE_EXHAUSTED, "%d calls of it wait already",
                    WAITING_MAX);
    }
    if (answer == SLOTS_FULL)
        err_add(&call->why, "tool '" STR_FMT "' was not called", STR_ARG(options->name));
    return answer;
}

static struct tool_call *request_start(struct tool *base, struct loop *loop,
                                       const struct tool_request *request, tool_done_fn *done,
                                       void *ctx) {
    struct tool_call *call = MEM_NEW(struct tool_call);
    call->tool = CONTAINER_OF(base, struct request_tool, base);
    atomic_fetch_add(&call->tool->refs, 1);
    call->loop = loop;
    call->done = done;
    call->ctx = ctx;
    call->slot = (struct slot){.loop = loop, .granted = request_on_slot, .ctx = call};
    enum slots_answer answer = request_enter(call, request);
    task_init(&call->begin, answer == SLOTS_FULL ? request_on_refused : send_request, call);
    if (answer != SLOTS_WAITING) loop_defer(loop, &call->begin);
    return call;
}

/* --- checking ----------------------------------------------------------------------------- */

static bool check_argument(const struct request_options *options, struct str name,
                           struct err *e) {
    struct json parameters, key, value;
    struct nearest nearest;
    if (!json_read(options->parameters, &parameters, e)) return false;
    struct json properties = json_find(parameters, STR("properties"));
    if (json_find(properties, name).kind != JSON_NONE) return true;
    nearest_init(&nearest, name);
    struct json_reader members = json_enter(properties);
    while (json_next_member(&members, &key, &value)) {
        if (key.raw.len > 2)
            nearest_offer(&nearest, str_skip(str_head(key.raw, key.raw.len - 1), 1));
    }
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "'{" STR_FMT "}' is not one of the parameters; list it under "
                   "parameters.properties%s",
                   STR_ARG(str_head(name, 40)), nearest_hint(&nearest));
}

static bool check_secret(const struct request_options *options, struct str name,
                         struct err *e) {
    for (size_t i = 0; i < options->secret_count; i++) {
        if (str_equal(options->secrets[i].name, name)) return true;
    }
    return err_set(e, ERR_INVALID_ARGUMENT, "the variable " STR_FMT " is not set",
                   STR_ARG(str_head(name, 80)));
}

static bool check_of_call(struct str name, struct err *e) {
    enum template_call which;
    return template_call_find(name, &which) ||
           err_set(e, ERR_INVALID_ARGUMENT,
                   "there is no '{call:" STR_FMT "}'; there are user, session, workspace, "
                   "agent and id",
                   STR_ARG(str_head(name, 40)));
}

bool request_check_template(const struct request_options *options, struct str text,
                            struct err *e) {
    struct template_piece piece;
    while (text.len) {
        if (!template_next(&text, &piece, e)) return false;
        if (piece.kind == TEMPLATE_ARGUMENT && !check_argument(options, piece.text, e))
            return false;
        if (piece.kind == TEMPLATE_SECRET && !check_secret(options, piece.text, e))
            return false;
        if (piece.kind == TEMPLATE_OF_CALL && !check_of_call(piece.text, e)) return false;
    }
    return true;
}

/* Check that the URL is still one that the operator configured. */
static bool check_url(struct str url, struct err *e) {
    bool web = str_starts(url, STR("http://")) || str_starts(url, STR("https://"));
    struct str rest = str_skip(url, str_find(url, STR("://")) + 3);
    size_t len = 0;
    if (!web)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "it is not an address; write it like https://host/path");
    for (size_t i = 0; i < url.len; i++) {
        if (url.at[i] <= ' ' || url.at[i] > '~' || url.at[i] == '#' || url.at[i] == '\\')
            return err_set(e, ERR_INVALID_ARGUMENT,
                           "it holds a space or a character that no address has");
    }
    while (len < rest.len && !strchr("/?", rest.at[len])) len++;
    struct str host = str_head(rest, len);
    if (!host.len) return err_set(e, ERR_INVALID_ARGUMENT, "it names no host");
    if (str_find_byte(host, '@') < host.len)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "a password cannot stand in an address; use key_env or a header");
    return str_find_byte(host, '{') == host.len ||
           err_set(e, ERR_INVALID_ARGUMENT,
                   "the host must stand there as it is: no call may choose it");
}

bool request_check(const struct request_options *options, struct err *e) {
    if (!check_url(options->url, e) || !request_check_template(options, options->url, e))
        return err_add(e, "url");
    for (size_t i = 0; i < options->query_count; i++) {
        if (!request_check_template(options, options->query[i].value, e))
            return err_add(e, "query." STR_FMT, STR_ARG(options->query[i].name));
    }
    for (size_t i = 0; i < options->header_count; i++) {
        if (!request_check_template(options, options->headers[i].value, e))
            return err_add(e, "headers." STR_FMT, STR_ARG(options->headers[i].name));
    }
    return true;
}

/* --- the tool ----------------------------------------------------------------------------- */

/* Copy a text of the settings. The arena was sized for all of them. */
static struct str request_keep(struct arena *arena, struct str text) {
    struct str kept = STR_EMPTY;
    if (!arena_str(arena, text, &kept)) abort(); /* the arena was sized for it */
    return kept;
}

static const struct request_field *
keep_fields(struct arena *arena, const struct request_field *fields, size_t count) {
    struct request_field *kept = arena_alloc(arena, (count + 1) * sizeof(*kept));
    for (size_t i = 0; i < count; i++)
        kept[i] = (struct request_field){request_keep(arena, fields[i].name),
                                         request_keep(arena, fields[i].value)};
    return kept;
}

/* The key is added as a secret without a name, because no template can refer to it. */
static void keep_secrets(struct arena *arena, const struct request_options *from,
                         struct request_options *to) {
    struct tool_secret *kept = arena_alloc(arena, (from->secret_count + 1) * sizeof(*kept));
    size_t count = 0;
    for (; count < from->secret_count; count++)
        kept[count] = (struct tool_secret){request_keep(arena, from->secrets[count].name),
                                           request_keep(arena, from->secrets[count].value)};
    if (from->key.len)
        kept[count++] = (struct tool_secret){STR_EMPTY, request_keep(arena, from->key)};
    to->secrets = kept;
    to->secret_count = count;
}

static size_t request_bytes_of(const struct request_options *from) {
    size_t bytes = from->name.len + from->description.len + from->parameters.len +
                   from->method.len + from->url.len + from->body.len + 2 * from->key.len +
                   from->pick.len;
    for (size_t i = 0; i < from->query_count; i++)
        bytes += from->query[i].name.len + from->query[i].value.len;
    for (size_t i = 0; i < from->header_count; i++)
        bytes += from->headers[i].name.len + from->headers[i].value.len;
    for (size_t i = 0; i < from->secret_count; i++)
        bytes += from->secrets[i].name.len + from->secrets[i].value.len;
    size_t rows = from->query_count + from->header_count + from->secret_count;
    return 2 * bytes + rows * KIB + ARENA_EXTRA_BYTES;
}

static void keep_options(struct request_tool *tool, const struct request_options *from) {
    struct arena *arena = tool->arena = arena_new(request_bytes_of(from));
    struct request_options *to = &tool->options;
    *to = *from;
    to->name = request_keep(arena, from->name);
    to->description = request_keep(arena, from->description);
    to->parameters = request_keep(arena, from->parameters);
    to->method = request_keep(arena, from->method);
    to->url = request_keep(arena, from->url);
    to->body = request_keep(arena, from->body);
    to->key = request_keep(arena, from->key);
    to->pick = request_keep(arena, from->pick);
    to->query = keep_fields(arena, from->query, from->query_count);
    to->headers = keep_fields(arena, from->headers, from->header_count);
    keep_secrets(arena, from, to);
}

static void request_free(struct tool *tool) {
    request_unref(CONTAINER_OF(tool, struct request_tool, base));
}

static const struct tool_kind kind = {
    .name = "http", .start = request_start, .cancel = request_call_leave, .free = request_free};

bool request_tool_new(const struct request_options *options, struct tool **ret, struct err *e) {
    if (!request_check(options, e)) return false;
    struct request_tool *tool = MEM_NEW(struct request_tool);
    atomic_init(&tool->refs, 1);
    keep_options(tool, options);
    tool->slots =
        slots_new(&(struct slots_limits){.all = options->at_once, .queue_max = WAITING_MAX});
    tool->base = (struct tool){.kind = &kind,
                               .name = tool->options.name,
                               .description = tool->options.description,
                               .parameters = tool->options.parameters,
                               .idempotent = options->idempotent,
                               .timeout_ms = options->timeout_ms};
    if (!schema_read(tool->base.parameters, &tool->schema, e)) {
        request_unref(tool);
        return err_add(e, "parameters");
    }
    tool->base.schema = tool->schema;
    *ret = &tool->base;
    return true;
}
