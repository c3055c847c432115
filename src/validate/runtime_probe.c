#include "base/mem.h"
#include "validate/runtime.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

/* A path that gave no response so often is not asked any more. */
#define SILENT_MAX 2

#define LONG_INPUT_BYTES (1 * MIB)
#define FIELDS_MAX_BYTES (64 * KIB)
#define WRONG_TOKEN STR("weir-validate-wrong-token")

enum probe_auth {
    AUTH_RIGHT,
    AUTH_NONE,
    AUTH_WRONG,
    AUTH_EMPTY,
    AUTH_BASIC,
    AUTH_HEAD,
    AUTH_TAIL,
    AUTH_TWICE,
};

/* What people are shown instead of the token. */
static const char *const auth_shown[] = {
    [AUTH_RIGHT] = "Authorization: Bearer (the token)\r\n",
    [AUTH_NONE] = "",
    [AUTH_WRONG] = "Authorization: Bearer (another token)\r\n",
    [AUTH_EMPTY] = "Authorization: Bearer\r\n",
    [AUTH_BASIC] = "Authorization: Basic (a name and a password)\r\n",
    [AUTH_HEAD] = "Authorization: Bearer (the token without its last byte)\r\n",
    [AUTH_TAIL] = "Authorization: Bearer (the token without its first byte)\r\n",
    [AUTH_TWICE] = "Authorization: Bearer (the token, and in a second field another one)\r\n",
};

/* What stands for a part of a body: the input of the options, as JSON, and the sessions. */
#define INPUT "$input"
#define SESSION "$session"

struct probe_row {
    const char *method, *path;
    enum probe_auth auth;
    const char *body;   /* NULL: none */
    const char *fields; /* instead of "Content-Type: application/json\r\n"; NULL: that */
    enum ask_body how;
    enum ask_until until;
    bool keep, reuse;
};

#define JSON_TYPE "Content-Type: application/json\r\n"
#define USUAL "{\"input\":" INPUT "}"
#define NOBODYS "{\"thread_id\":\"" SESSION "\",\"human_input\":\"\"}"

/* clang-format off */
static const struct probe_row probes[PROBE_COUNT] = {
    [PROBE_HEALTH]             = {.method = "GET", .path = "/health", .auth = AUTH_NONE},
    [PROBE_HEALTH_WRONG_TOKEN] = {.method = "GET", .path = "/health", .auth = AUTH_WRONG},
    [PROBE_HEALTH_VERSION_2]   = {.method = "GET", .path = "/health", .auth = AUTH_NONE, .fields = "X-Runtime-Contract-Version: 2\r\n"},
    [PROBE_OPENAPI]            = {.method = "GET", .path = "/openapi.json", .auth = AUTH_NONE},
    [PROBE_CARD]               = {.method = "GET", .path = "/.well-known/agent.json", .auth = AUTH_NONE},

    [PROBE_INVOKE_NO_TOKEN]    = {.method = "POST", .path = "/invoke", .auth = AUTH_NONE, .body = USUAL},
    [PROBE_INVOKE_WRONG_TOKEN] = {.method = "POST", .path = "/invoke", .auth = AUTH_WRONG, .body = USUAL},
    [PROBE_INVOKE_EMPTY_TOKEN] = {.method = "POST", .path = "/invoke", .auth = AUTH_EMPTY, .body = USUAL},
    [PROBE_INVOKE_BASIC]       = {.method = "POST", .path = "/invoke", .auth = AUTH_BASIC, .body = USUAL},
    [PROBE_INVOKE_TOKEN_HEAD]  = {.method = "POST", .path = "/invoke", .auth = AUTH_HEAD, .body = USUAL},
    [PROBE_INVOKE_TOKEN_TAIL]  = {.method = "POST", .path = "/invoke", .auth = AUTH_TAIL, .body = USUAL},
    [PROBE_INVOKE_TOKEN_TWICE] = {.method = "POST", .path = "/invoke", .auth = AUTH_TWICE, .body = USUAL},
    [PROBE_STREAM_NO_TOKEN]    = {.method = "POST", .path = "/stream", .auth = AUTH_NONE, .body = USUAL},
    [PROBE_STREAM_WRONG_TOKEN] = {.method = "POST", .path = "/stream", .auth = AUTH_WRONG, .body = USUAL},
    [PROBE_STREAM_EMPTY_TOKEN] = {.method = "POST", .path = "/stream", .auth = AUTH_EMPTY, .body = USUAL},
    [PROBE_STREAM_BASIC]       = {.method = "POST", .path = "/stream", .auth = AUTH_BASIC, .body = USUAL},
    [PROBE_RESUME_NO_TOKEN]    = {.method = "POST", .path = "/resume", .auth = AUTH_NONE, .body = NOBODYS},
    [PROBE_RESUME_WRONG_TOKEN] = {.method = "POST", .path = "/resume", .auth = AUTH_WRONG, .body = NOBODYS},
    [PROBE_RESUME_EMPTY_TOKEN] = {.method = "POST", .path = "/resume", .auth = AUTH_EMPTY, .body = NOBODYS},
    [PROBE_RESUME_BASIC]       = {.method = "POST", .path = "/resume", .auth = AUTH_BASIC, .body = NOBODYS},

    [PROBE_INVOKE]             = {.method = "POST", .path = "/invoke", .body = USUAL},
    [PROBE_INVOKE_AGAIN]       = {.method = "POST", .path = "/invoke", .body = USUAL},
    [PROBE_INVOKE_STRING]      = {.method = "POST", .path = "/invoke", .body = "{\"input\":\"ping\"}"},
    [PROBE_INVOKE_OBJECT]      = {.method = "POST", .path = "/invoke", .body = "{\"input\":{\"message\":\"ping\"}}"},
    [PROBE_INVOKE_ARRAY]       = {.method = "POST", .path = "/invoke", .body = "{\"input\":[{\"type\":\"text\",\"text\":\"ping\"}]}"},
    [PROBE_INVOKE_SESSION]     = {.method = "POST", .path = "/invoke", .body = "{\"input\":" INPUT ",\"session_id\":\"" SESSION "\"}"},
    [PROBE_INVOKE_SESSION_HEADER] = {.method = "POST", .path = "/invoke", .body = USUAL, .fields = JSON_TYPE "X-Session-Id: " SESSION "\r\n"},
    [PROBE_INVOKE_SESSION_BOTH] = {.method = "POST", .path = "/invoke", .body = "{\"input\":" INPUT ",\"session_id\":\"" SESSION "\"}", .fields = JSON_TYPE "X-Session-Id: $other\r\n"},
    [PROBE_INVOKE_EXTRAS]      = {.method = "POST", .path = "/invoke", .body = "{\"input\":" INPUT ",\"config\":{\"configurable\":{}},\"metadata\":{\"weir_validate\":true},"
        "\"x_weir_validate\":[1]}", .fields = JSON_TYPE "X-Weir-Validate: 1\r\n"},
    [PROBE_INVOKE_UNICODE]     = {.method = "POST", .path = "/invoke", .body = "{\"input\":\"Gr\xc3\xbc\xc3\x9f Gott \xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x91\x8b \\ud83d\\ude80\"}"},
    [PROBE_INVOKE_NUL]         = {.method = "POST", .path = "/invoke", .body = "{\"input\":\"a\\u0000b\"}"},
    [PROBE_INVOKE_LONG]        = {.method = "POST", .path = "/invoke", .body = "{\"input\":\"$long\"}"},
    [PROBE_INVOKE_ERROR]       = {.method = "POST", .path = "/invoke", .body = "{\"input\":$error}"},
    [PROBE_INVOKE_HITL]        = {.method = "POST", .path = "/invoke", .body = "{\"input\":$hitl,\"session_id\":\"$other\",\"thread_id\":\"$other\"}"},
    [PROBE_INVOKE_VERSION_1]   = {.method = "POST", .path = "/invoke", .body = USUAL, .fields = JSON_TYPE "X-Runtime-Contract-Version: 1\r\n"},
    [PROBE_INVOKE_VERSION_2]   = {.method = "POST", .path = "/invoke", .body = USUAL, .fields = JSON_TYPE "X-Runtime-Contract-Version: 2\r\n"},
    [PROBE_INVOKE_TRACED]      = {.method = "POST", .path = "/invoke", .body = USUAL, .fields = JSON_TYPE "X-Trace-Id: 4bf92f3577b34da6a3ce929d0e0e4736\r\nX-Request-Id: " SESSION "\r\n"
        "X-Idempotency-Key: " SESSION "\r\n"},
    [PROBE_INVOKE_KEPT]        = {.method = "POST", .path = "/invoke", .body = USUAL, .keep = true},
    [PROBE_INVOKE_REUSED]      = {.method = "POST", .path = "/invoke", .body = USUAL, .reuse = true},
    [PROBE_INVOKE_CHUNKED]     = {.method = "POST", .path = "/invoke", .body = USUAL, .how = ASK_CHUNKED},
    [PROBE_INVOKE_EXPECT]      = {.method = "POST", .path = "/invoke", .body = USUAL, .fields = JSON_TYPE "Expect: 100-continue\r\n"},

    [PROBE_BAD_JSON]           = {.method = "POST", .path = "/invoke", .body = "{\"input\":"},
    [PROBE_NO_INPUT]           = {.method = "POST", .path = "/invoke", .body = "{}"},
    [PROBE_WRONG_TYPE]         = {.method = "POST", .path = "/invoke", .body = "{\"input\":" INPUT ",\"session_id\":7}"},
    [PROBE_TEXT_PLAIN]         = {.method = "POST", .path = "/invoke", .body = "ping", .fields = "Content-Type: text/plain\r\n"},
    [PROBE_NO_PATH]            = {.method = "GET", .path = "/weir-validate/no/such/path"},
    [PROBE_NO_METHOD]          = {.method = "GET", .path = "/invoke"},

    [PROBE_STREAM]             = {.method = "POST", .path = "/stream", .body = USUAL},
    [PROBE_STREAM_BAD_JSON]    = {.method = "POST", .path = "/stream", .body = "{\"input\":"},
    [PROBE_STREAM_ERROR]       = {.method = "POST", .path = "/stream", .body = "{\"input\":$error}"},
    [PROBE_STREAM_VERSION_2]   = {.method = "POST", .path = "/stream", .body = USUAL, .fields = JSON_TYPE "X-Runtime-Contract-Version: 2\r\n"},
    [PROBE_STREAM_LEFT]        = {.method = "POST", .path = "/stream", .body = USUAL, .until = ASK_TO_FIRST_BYTE},

    [PROBE_RESUME_EMPTY]       = {.method = "POST", .path = "/resume", .body = "{\"thread_id\":\"\",\"human_input\":\"\"}"},
    [PROBE_RESUME_UNKNOWN]     = {.method = "POST", .path = "/resume", .body = "{\"thread_id\":\"" SESSION "-nobody\",\"human_input\":\"yes\"}"},
};
/* clang-format on */

/* --- the parts of a request ------------------------------------------------------------------ */

struct part {
    const char *name;
    struct str text;
};

/* Copy `text` with the parts put in. */
static void put_parts(struct str text, const struct part *parts, size_t count,
                      struct buf *out) {
    while (text.len) {
        size_t at = str_find_byte(text, '$'), i = 0;
        buf_append(out, str_head(text, at));
        text = str_skip(text, at);
        while (text.len && i < count && !str_starts(text, str_from(parts[i].name))) i++;
        if (text.len == 0) return;
        assert(i < count); /* the table has no other '$' */
        buf_append(out, parts[i].text);
        text = str_skip(text, strlen(parts[i].name));
    }
}

static struct text long_text(void) {
    struct text text = {.at = mem_alloc(LONG_INPUT_BYTES + 1), .len = LONG_INPUT_BYTES};
    memset(text.at, 'x', text.len);
    text.at[text.len] = '\0';
    return text;
}

static void runtime_probe_write_parts(const struct runtime *runtime, struct str text,
                                      struct buf *out) {
    const struct validate_options *options = runtime->options;
    bool is_long = str_find(text, STR("$long")) < text.len;
    struct text filler = is_long ? long_text() : (struct text){0};
    const struct part parts[] = {
        {INPUT, options->input},
        {SESSION, str_from(runtime->session)},
        {"$other", str_from(runtime->other_session)},
        {"$error", options->error_input},
        {"$hitl", options->hitl_input},
        {"$long", text_str(filler)},
    };
    put_parts(text, parts, ARRAY_LEN(parts), out);
    text_done(&filler);
}

void runtime_put_bearer(struct str token, struct buf *out) {
    buf_printf(out, "Authorization: Bearer " STR_FMT "\r\n", STR_ARG(token));
}

static void put_auth(const struct runtime *runtime, enum probe_auth auth, struct buf *out) {
    struct str token = runtime->options->token;
    switch (auth) {
    case AUTH_NONE: return;
    case AUTH_RIGHT:
        if (token.len) runtime_put_bearer(token, out);
        return;
    case AUTH_WRONG: runtime_put_bearer(WRONG_TOKEN, out); return;
    case AUTH_EMPTY: runtime_put_bearer(STR_EMPTY, out); return;
    case AUTH_BASIC: buf_append(out, STR("Authorization: Basic dTpw\r\n")); return;
    case AUTH_HEAD: runtime_put_bearer(str_head(token, token.len - 1), out); return;
    case AUTH_TAIL: runtime_put_bearer(str_skip(token, 1), out); return;
    case AUTH_TWICE:
        runtime_put_bearer(token, out);
        runtime_put_bearer(WRONG_TOKEN, out);
        return;
    }
}

/* --- asking ----------------------------------------------------------------------------------- */

static size_t path_index(struct str path) {
    static const char *const paths[] = {"/invoke", "/stream", "/resume"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        if (str_equal(path, str_from(paths[i]))) return i;
    }
    return ARRAY_LEN(paths);
}

static void not_asked(struct str path, struct reply *ret) {
    *ret = (struct reply){.connected = true};
    buf_init(&ret->head, REPLY_HEAD_MAX_BYTES);
    buf_init(&ret->body, REPLY_BODY_MAX_BYTES);
    buf_init(&ret->raw, REPLY_RAW_MAX_BYTES);
    buf_init(&ret->sent_text, FINDING_SEEN_MAX_BYTES);
    buf_init(&ret->seen_text, FINDING_SEEN_MAX_BYTES);
    err_set(&ret->failed, ERR_DEADLINE_EXCEEDED,
            STR_FMT " did not answer %d times in time and was not asked again", STR_ARG(path),
            SILENT_MAX);
}

void runtime_ask(struct runtime *runtime, const struct question *question, struct reply *ret) {
    unsigned *silent = &runtime->silent[path_index(question->path)];
    if (*silent >= SILENT_MAX) {
        not_asked(question->path, ret);
        return;
    }
    ask(runtime->target->asker, question, ret);
    if (ret->timed_out) ++*silent;
}

void runtime_ask_health(struct runtime *runtime, struct reply *ret) {
    runtime_ask(runtime,
                &(struct question){.url = buf_str(&runtime->target->url),
                                   .method = STR("GET"),
                                   .path = STR("/health"),
                                   .timeout_ms = runtime->options->timeout_ms},
                ret);
}

static void ask_probe(struct runtime *runtime, enum probe probe) {
    const struct probe_row *row = &probes[probe];
    const char *fields = row->fields ? row->fields : row->body ? JSON_TYPE : "";
    struct buf shown, all, body;
    buf_init(&shown, FIELDS_MAX_BYTES);
    buf_init(&all, FIELDS_MAX_BYTES);
    buf_init(&body, REPLY_BODY_MAX_BYTES);
    runtime_probe_write_parts(runtime, str_from(fields), &shown);
    put_auth(runtime, row->auth, &all);
    buf_append(&all, buf_str(&shown));
    if (runtime->options->token.len || row->auth != AUTH_RIGHT)
        buf_append(&shown, str_from(auth_shown[row->auth]));
    runtime_probe_write_parts(runtime, str_from(row->body), &body);
    runtime_ask(runtime,
                &(struct question){.url = buf_str(&runtime->target->url),
                                   .method = str_from(row->method),
                                   .path = str_from(row->path),
                                   .fields = buf_str(&all),
                                   .shown = buf_str(&shown),
                                   .body = buf_str(&body),
                                   .how = row->how,
                                   .until = row->until,
                                   .keep = row->keep,
                                   .reuse = row->reuse,
                                   .timeout_ms = runtime->options->timeout_ms},
                &runtime->replies[probe]);
    runtime->asked[probe] = true;
    buf_done(&shown);
    buf_done(&all);
    buf_done(&body);
}

const struct reply *runtime_probe(struct judge *judge, enum probe probe) {
    struct runtime *runtime = runtime_of(judge);
    /* The same request twice would only cost the agent another turn. */
    if (probe == PROBE_INVOKE_STRING && str_starts(runtime->options->input, STR("\"")))
        probe = PROBE_INVOKE;
    if (!runtime->asked[probe]) ask_probe(runtime, probe);
    return &runtime->replies[probe];
}

const struct reply *runtime_next_reply(const struct runtime *runtime, size_t *at,
                                       enum probe *ret_probe) {
    while (*at < PROBE_COUNT && !runtime->asked[*at]) ++*at;
    if (*at >= PROBE_COUNT) return NULL;
    *ret_probe = (enum probe) * at;
    return &runtime->replies[(*at)++];
}

bool probe_is_stream(enum probe probe) {
    return strcmp(probes[probe].path, "/stream") == 0;
}

/* --- the world --------------------------------------------------------------------------------- */

struct runtime *runtime_of(const struct judge *judge) {
    return judge->world;
}

/* Short, so that it is not taken for a secret. */
static void make_session(char out[RUNTIME_SESSION_BYTES], const char *name) {
    uint32_t random = 0;
    ssize_t got = getrandom(&random, sizeof(random), 0);
    assert(got == sizeof(random));
    (void)got;
    snprintf(out, RUNTIME_SESSION_BYTES, "%s-%08x", name, random);
}

void *runtime_open(struct target *target, const struct validate_options *options) {
    struct runtime *runtime = MEM_NEW(struct runtime);
    runtime->target = target;
    runtime->options = options;
    make_session(runtime->session, "validate");
    make_session(runtime->other_session, "other");
    return runtime;
}

void runtime_close(void *world) {
    struct runtime *runtime = world;
    for (size_t i = 0; i < PROBE_COUNT; i++) {
        if (runtime->asked[i]) reply_done(&runtime->replies[i]);
    }
    free(runtime);
}

/* It answers /health as the contract says, or it has /invoke. */
bool runtime_speaks(struct target *target, const struct validate_options *options) {
    struct reply reply;
    if (!target->start.answered) return false;
    ask(target->asker,
        &(struct question){.url = buf_str(&target->url),
                           .method = STR("GET"),
                           .path = STR("/health"),
                           .timeout_ms = options->timeout_ms},
        &reply);
    bool speaks = reply.json.kind == JSON_OBJECT && json_find(reply.json, STR("status")).kind;
    reply_done(&reply);
    if (speaks) return true;
    ask(target->asker,
        &(struct question){.url = buf_str(&target->url),
                           .method = STR("POST"),
                           .path = STR("/invoke"),
                           .timeout_ms = options->timeout_ms},
        &reply);
    speaks = reply.json.kind == JSON_OBJECT && reply.status != 404;
    reply_done(&reply);
    return speaks;
}
