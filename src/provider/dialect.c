#include "provider/dialect.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

/* --- the dialects ------------------------------------------------------------------------- */

#define DIALECT_ADDRESS(name) &name##_dialect,
const struct dialect *const dialects[DIALECT_COUNT] = {DIALECTS(DIALECT_ADDRESS)};

const struct dialect *dialect_find(struct str name) {
    for (size_t i = 0; i < DIALECT_COUNT; i++) {
        if (str_equal(name, str_from(dialects[i]->name))) return dialects[i];
    }
    return NULL;
}

/* --- what a reply holds ------------------------------------------------------------------- */

static struct buf *buf_of(struct reply *reply, size_t index) {
    return (struct buf *)(void *)((char *)reply + reply->layout->bufs[index]);
}

void *reply_new(const struct reply_layout *layout, reply_event_fn *on_reply, void *ctx) {
    struct reply *reply = mem_zero(1, layout->size);
    reply->on_reply = on_reply;
    reply->ctx = ctx;
    reply->layout = layout;
    for (size_t i = 0; i < layout->buf_count; i++) buf_init(buf_of(reply, i), REPLY_MAX_BYTES);
    return reply;
}

void reply_free(struct reply *reply) {
    if (!reply) return;
    for (size_t i = 0; i < reply->layout->buf_count; i++) buf_done(buf_of(reply, i));
    json_template_done(&reply->like);
    free(reply);
}

bool reply_check_size(struct reply *reply, const char *title) {
    for (size_t i = 0; i < reply->layout->buf_count; i++) {
        if (!buf_ok(buf_of(reply, i)))
            return reply_fail(reply, ERR_TOO_LARGE, MODEL_ANSWER_TOO_LONG,
                              "%s sent an answer larger than %d MiB; ask for a shorter one",
                              title, (int)(REPLY_MAX_BYTES / MIB));
    }
    return true;
}

/* Larger numbers are not token counts. Sums of a few cannot overflow. */
#define TOKENS_MAX (INT64_C(1) << 50)

void reply_take_tokens(struct json usage, struct str name, int64_t *ret) {
    int64_t tokens;
    if (json_i64(json_find(usage, name), &tokens) && tokens >= 0 && tokens <= TOKENS_MAX)
        *ret = tokens;
}

void reply_tell_opaque(const struct reply *reply, const char *dialect,
                       const struct buf *blocks) {
    struct buf whole;
    buf_init(&whole, blocks->len + 2);
    buf_append_byte(&whole, '[');
    buf_append(&whole, buf_str(blocks));
    buf_append_byte(&whole, ']');
    reply_tell(reply, &(struct reply_event){REPLY_OPAQUE, .dialect = str_from(dialect),
                                            .text = buf_str(&whole)});
    buf_done(&whole);
}

/* --- failures ----------------------------------------------------------------------------- */

bool reply_fail(struct reply *reply, enum err_code code, const char *reason, const char *format,
                ...) {
    char text[ERR_TEXT_BYTES +
              4]; /* longer than err_set() stores, so that it cuts between characters */
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    reply->failure.reason = reason;
    return err_set(&reply->failure.why, code, "%s", text);
}

/* What the caller is parts for each reason. A wrong key and an empty account are the operator's
 * problem. The caller can do nothing about them, so the code never says that the caller is
 * unauthenticated or over a quota. */
static const struct reason {
    struct str name;
    enum err_code code;
    bool refusal; /* the content of this request was refused */
    struct str sentence;
} reasons[] = {
    /* clang-format off */
    {STR_INIT(PROVIDER_UNREACHABLE),  ERR_UNAVAILABLE,         false,
     STR_INIT("the model's provider cannot be reached; try again in a moment")},
    {STR_INIT(PROVIDER_FORBIDDEN),    ERR_FAILED_PRECONDITION, false,
     STR_INIT("the model's provider is at an address that this server does not ask")},
    {STR_INIT(PROVIDER_TIMEOUT),      ERR_DEADLINE_EXCEEDED,   false,
     STR_INIT("the model's provider did not answer in time; try again in a moment")},
    {STR_INIT(PROVIDER_AUTH),         ERR_FAILED_PRECONDITION, false,
     STR_INIT("the model's provider refused the server's credentials")},
    {STR_INIT(PROVIDER_RATE_LIMITED), ERR_RESOURCE_EXHAUSTED,  false,
     STR_INIT("the model's provider accepts no more requests for now; try again in a moment")},
    {STR_INIT(PROVIDER_QUOTA),        ERR_FAILED_PRECONDITION, false,
     STR_INIT("the model's provider says that the server's account is used up")},
    {STR_INIT(PROVIDER_OVERLOADED),   ERR_UNAVAILABLE,         false,
     STR_INIT("the model's provider is overloaded; try again in a moment")},
    {STR_INIT(PROVIDER_ERROR),        ERR_UNAVAILABLE,         false,
     STR_INIT("the model's provider reported an error of its own; try again in a moment")},
    {STR_INIT(PROVIDER_REJECTED),     ERR_INVALID_ARGUMENT,    true,
     STR_INIT("the model's provider refused this request")},
    {STR_INIT(PROVIDER_BROKEN),       ERR_UNAVAILABLE,         false,
     STR_INIT("the model's answer did not come to its end; try again")},
    {STR_INIT(MODEL_CONTEXT),         ERR_INVALID_ARGUMENT,    true,
     STR_INIT("the conversation is too long for the model; begin a new one")},
    {STR_INIT(MODEL_REFUSED),         ERR_PERMISSION_DENIED,   true,
     STR_INIT("the model refused to answer this")},
    {STR_INIT(MODEL_CANNOT_CARRY),    ERR_INVALID_ARGUMENT,    true,
     STR_INIT("the model does not accept such a message")},
    {STR_INIT(MODEL_ANSWER_TOO_LONG), ERR_TOO_LARGE,           false,
     STR_INIT("the model's answer is longer than this server takes; ask for a shorter one")},
    /* clang-format on */
};

static const struct reason *find_reason(struct str name) {
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        if (str_equal(reasons[i].name, name)) return &reasons[i];
    }
    return NULL;
}

struct str reply_reason_sentence(struct str reason) {
    const struct reason *row = find_reason(reason);
    return row ? row->sentence : STR("the model could not be asked");
}

bool reply_reason_is_refusal(struct str reason) {
    const struct reason *row = find_reason(reason);
    return row && row->refusal;
}

static enum err_code code_of(const char *reason, unsigned status) {
    bool rejected = strcmp(reason, PROVIDER_REJECTED) == 0;
    if (rejected && status == 404) return ERR_NOT_FOUND; /* the model, or a wrong base URL */
    const struct reason *row = find_reason(str_from(reason));
    return row ? row->code : ERR_UNAVAILABLE;
}

/* --- what a vendor's error means ---------------------------------------------------------- */

static const struct {
    unsigned status;
    const char *reason;
} statuses[] = {
    {401, PROVIDER_AUTH},         {402, PROVIDER_QUOTA},      {403, PROVIDER_AUTH},
    {408, PROVIDER_TIMEOUT},      {409, PROVIDER_ERROR},      {413, MODEL_CONTEXT},
    {429, PROVIDER_RATE_LIMITED}, {503, PROVIDER_OVERLOADED}, {529, PROVIDER_OVERLOADED},
};

static const char *reason_of_status(unsigned status) {
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        if (statuses[i].status == status) return statuses[i].reason;
    }
    if (status >= 400 && status < 500) return PROVIDER_REJECTED;
    if (status >= 200 && status < 400) return PROVIDER_BROKEN; /* no stream, no error */
    return PROVIDER_ERROR;
}

/* Values of "code", "type", "status" or "reason". SPECIAL words say more than the HTTP status
 * and take precedence (429 with insufficient_quota, 400 with API_KEY_INVALID). GENERAL ones
 * count only without a status, inside a stream. */
enum weight { GENERAL, SPECIAL };

static const struct {
    struct str word;
    const char *reason;
    enum weight weight;
} words[] = {
    /* clang-format off */
    {STR_INIT("insufficient_quota"),           PROVIDER_QUOTA,        SPECIAL},
    {STR_INIT("insufficient_balance"),         PROVIDER_QUOTA,        SPECIAL},
    {STR_INIT("insufficient_credits"),         PROVIDER_QUOTA,        SPECIAL},
    {STR_INIT("billing_error"),                PROVIDER_QUOTA,        SPECIAL},
    {STR_INIT("billing_hard_limit_reached"),   PROVIDER_QUOTA,        SPECIAL},
    {STR_INIT("billing_not_active"),           PROVIDER_QUOTA,        SPECIAL},
    {STR_INIT("context_length_exceeded"),      MODEL_CONTEXT,         SPECIAL},
    {STR_INIT("exceed_context_size_error"),    MODEL_CONTEXT,         SPECIAL},
    {STR_INIT("request_too_large"),            MODEL_CONTEXT,         SPECIAL},
    {STR_INIT("content_filter"),               MODEL_REFUSED,         SPECIAL},
    {STR_INIT("content_policy_violation"),     MODEL_REFUSED,         SPECIAL},
    {STR_INIT("ResponsibleAIPolicyViolation"), MODEL_REFUSED,         SPECIAL},
    {STR_INIT("invalid_api_key"),              PROVIDER_AUTH,         SPECIAL},
    {STR_INIT("API_KEY_INVALID"),              PROVIDER_AUTH,         SPECIAL},
    {STR_INIT("account_deactivated"),          PROVIDER_AUTH,         SPECIAL},
    {STR_INIT("authentication_error"),         PROVIDER_AUTH,         SPECIAL},
    {STR_INIT("permission_error"),             PROVIDER_AUTH,         SPECIAL},
    {STR_INIT("UNAUTHENTICATED"),              PROVIDER_AUTH,         SPECIAL},
    {STR_INIT("PERMISSION_DENIED"),            PROVIDER_AUTH,         SPECIAL},
    {STR_INIT("overloaded_error"),             PROVIDER_OVERLOADED,   SPECIAL},
    {STR_INIT("engine_overloaded_error"),      PROVIDER_OVERLOADED,   SPECIAL},
    {STR_INIT("server_is_overloaded"),         PROVIDER_OVERLOADED,   SPECIAL},
    {STR_INIT("rate_limit_error"),             PROVIDER_RATE_LIMITED, SPECIAL},
    {STR_INIT("rate_limit_exceeded"),          PROVIDER_RATE_LIMITED, SPECIAL},
    {STR_INIT("too_many_requests"),            PROVIDER_RATE_LIMITED, GENERAL},
    {STR_INIT("RESOURCE_EXHAUSTED"),           PROVIDER_RATE_LIMITED, GENERAL},
    {STR_INIT("slow_down"),                    PROVIDER_OVERLOADED,   GENERAL},
    {STR_INIT("service_unavailable"),          PROVIDER_OVERLOADED,   GENERAL},
    {STR_INIT("UNAVAILABLE"),                  PROVIDER_OVERLOADED,   GENERAL},
    {STR_INIT("timeout_error"),                PROVIDER_TIMEOUT,      GENERAL},
    {STR_INIT("DEADLINE_EXCEEDED"),            PROVIDER_TIMEOUT,      GENERAL},
    {STR_INIT("model_not_found"),              PROVIDER_REJECTED,     GENERAL},
    {STR_INIT("not_found_error"),              PROVIDER_REJECTED,     GENERAL},
    {STR_INIT("NOT_FOUND"),                    PROVIDER_REJECTED,     GENERAL},
    {STR_INIT("INVALID_ARGUMENT"),             PROVIDER_REJECTED,     GENERAL},
    {STR_INIT("FAILED_PRECONDITION"),          PROVIDER_REJECTED,     GENERAL},
    {STR_INIT("invalid_request_error"),        PROVIDER_REJECTED,     GENERAL},
    {STR_INIT("invalid_prompt"),               PROVIDER_REJECTED,     GENERAL},
    /* clang-format on */
};

#define WORD_MAX_BYTES 64

/* Phrases of vendors' messages, for errors that no code distinguishes from other bad
 * requests. */
static const struct {
    struct str phrase;
    const char *reason;
} phrases[] = {
    {STR_INIT("context length"), MODEL_CONTEXT},
    {STR_INIT("context window"), MODEL_CONTEXT},
    {STR_INIT("context size"), MODEL_CONTEXT},
    {STR_INIT("maximum context"), MODEL_CONTEXT},
    {STR_INIT("maximum number of tokens"), MODEL_CONTEXT},
    {STR_INIT("maximum prompt length"), MODEL_CONTEXT},
    {STR_INIT("too many tokens"), MODEL_CONTEXT},
    {STR_INIT("is too long"), MODEL_CONTEXT}, /* the prompt; a field gives "string too long" */
    {STR_INIT("are too long"), MODEL_CONTEXT},
    {STR_INIT("credit balance is too low"), PROVIDER_QUOTA},
    {STR_INIT("API key not valid"), PROVIDER_AUTH},
};

/* The parts of an error, wherever the vendor put them; JSON_NONE when absent. */
struct error_parts {
    struct json object, message;
};

/* {"error":{...}}, [{"error":{...}}], {"error":"..."}, {"message":...}, {"detail":...}, "..."
 * FastAPI's detail of a refused body is a list; see append_message(). */
static struct error_parts error_parts_of(struct json body) {
    if (body.kind == JSON_ARRAY) body = json_at(body, 0);
    if (body.kind == JSON_STRING) return (struct error_parts){.message = body};
    struct json error = json_find(body, STR("error"));
    if (error.kind == JSON_STRING) return (struct error_parts){body, error};
    struct error_parts parts = {.object = error.kind == JSON_OBJECT ? error : body};
    parts.message = json_find(parts.object, STR("message"));
    if (parts.message.kind != JSON_STRING) parts.message = json_find(body, STR("detail"));
    return parts;
}

/* The reason for `word`, or NULL. */
static const char *reason_of_word(struct json word, enum weight least) {
    struct buf text;
    buf_init(&text, WORD_MAX_BYTES);
    const char *reason = NULL;
    bool read = json_text(word, &text);
    for (size_t i = 0; read && i < ARRAY_LEN(words) && !reason; i++) {
        if (words[i].weight >= least && str_equal_nocase(words[i].word, buf_str(&text)))
            reason = words[i].reason;
    }
    buf_done(&text);
    return reason;
}

static const char *reason_of_words(struct json object, enum weight least) {
    static const struct str keys[] = {STR_INIT("code"), STR_INIT("type"), STR_INIT("status"),
                                      STR_INIT("reason")};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const char *reason = reason_of_word(json_find(object, keys[i]), least);
        if (reason) return reason;
    }
    /* google.rpc.ErrorInfo */
    struct json_reader details = json_enter(json_find(object, STR("details")));
    for (struct json detail; json_next_item(&details, &detail);) {
        const char *reason = reason_of_word(json_find(detail, STR("reason")), least);
        if (reason) return reason;
    }
    return NULL;
}

static const char *reason_of_text(struct str message) {
    for (size_t i = 0; i < ARRAY_LEN(phrases); i++) {
        if (str_find_nocase(message, phrases[i].phrase) < message.len) return phrases[i].reason;
    }
    return NULL;
}

/* Inside a stream, a number is the HTTP status that came too late for the head. */
static unsigned dialect_status_of(struct json object) {
    int64_t number;
    struct json code = json_find(object, STR("code"));
    if (json_i64(code, &number) && number >= 400 && number < 600) return (unsigned)number;
    return 0;
}

static const char *reason_of(unsigned status, struct json object, struct str message) {
    const char *reason = reason_of_words(object, SPECIAL);
    if (reason) return reason;
    bool about_request = status < 401 || status == 404 || status == 422 || status == 413;
    if (about_request) reason = reason_of_text(message);
    if (reason) return reason;
    if (!status) reason = reason_of_words(object, GENERAL);
    if (reason) return reason;
    if (!status) status = dialect_status_of(object);
    return status ? reason_of_status(status) : PROVIDER_ERROR;
}

/* --- wording ------------------------------------------------------------------------------ */

/* Limit for a vendor's message, so that our own words around it are not cut. */
#define MESSAGE_SHOWN_BYTES 240

/* Text of a message beyond this is ignored. */
#define MESSAGE_MAX_BYTES (256 * KIB)

/* The first of [{"loc":["body","input"],"msg":"..."}], as "body.input: ...". */
static void append_refusal(struct json list, struct buf *out) {
    struct json first = json_at(list, 0);
    struct json_reader places = json_enter(json_find(first, STR("loc")));
    size_t before = out->len;
    for (struct json place; json_next_item(&places, &place);) {
        if (out->len > before) buf_append_byte(out, '.');
        if (place.kind == JSON_STRING)
            json_text(place, out);
        else
            buf_append(out, place.raw);
    }
    if (out->len > before) buf_append(out, STR(": "));
    json_text(json_find(first, STR("msg")), out);
}

static void append_message(struct json message, struct buf *out) {
    if (message.kind == JSON_ARRAY)
        append_refusal(message, out);
    else
        json_text(message, out);
}

void reply_failure_of(const char *title, unsigned status, struct json body,
                      struct reply_failure *ret) {
    struct error_parts parts = error_parts_of(body);
    struct buf message, shown;
    buf_init(&message, MESSAGE_MAX_BYTES);
    buf_init(&shown, 2 * MESSAGE_SHOWN_BYTES);
    append_message(parts.message, &message);
    reply_append_safe(&shown, buf_str(&message), MESSAGE_SHOWN_BYTES);

    ret->reason = reason_of(status, parts.object, buf_str(&message));
    enum err_code code = code_of(ret->reason, status);
    struct str why = buf_str(&shown);
    if (status) {
        err_set(&ret->why, code, "%s answered %u%s" STR_FMT, title, status,
                why.len ? ": " : " and did not say why", STR_ARG(why));
    } else {
        err_set(&ret->why, code, "%s sent an error%s" STR_FMT, title,
                why.len ? ": " : " and did not say which", STR_ARG(why));
    }
    buf_done(&message);
    buf_done(&shown);
}
