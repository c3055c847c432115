/* remote_failure: words the failure of a call, for programs and for people. */
#include "base/log.h"
#include "base/units.h"
#include "provider/remote_inner.h"

#include <inttypes.h>
#include <stdio.h>

/* Limit for quoted text, so that our own words around it are not cut. */
#define QUOTED_MAX_BYTES 200
#define TYPE_MAX_BYTES 60
#define NAME_MAX_BYTES 60

/* --- time, and no server ------------------------------------------------------------------ */

void failure_timeout(const struct remote_options *options, enum http_stage stage, bool expired,
                     struct reply_failure *ret) {
    const struct {
        const char *what;
        uint64_t ms;
    } limits[] = {
        [HTTP_CONNECTING] = {"there was no connection within ", options->connect_ms},
        [HTTP_WAITING] = {"its answer did not begin within ", options->first_byte_ms},
        [HTTP_READING] = {"its answer stood still for ", options->stall_ms},
        [HTTP_COMPLETE] = {"its answer was not complete after ", options->total_ms},
    };
    enum http_stage limit = expired ? HTTP_COMPLETE : stage;
    struct buf why;
    buf_init(&why, ERR_TEXT_BYTES);
    buf_append(&why, str_from(limits[limit].what));
    units_append_duration(&why, limits[limit].ms * 1000);
    ret->reason = PROVIDER_TIMEOUT;
    err_set(&ret->why, ERR_DEADLINE_EXCEEDED, STR_FMT, STR_ARG(buf_str(&why)));
    buf_done(&why);
}

/* Set "`what`: `why`", with the peer's text made safe. */
static void remote_failure_set(struct reply_failure *ret, const char *reason, const char *what,
                               const struct err *why) {
    struct buf text;
    buf_init(&text, ERR_TEXT_BYTES);
    reply_append_safe(&text, err_text(why), QUOTED_MAX_BYTES);
    ret->reason = reason;
    err_set(&ret->why, ERR_UNAVAILABLE, "%s: " STR_FMT, what, STR_ARG(buf_str(&text)));
    buf_done(&text);
}

void failure_unreachable(const struct err *why, struct reply_failure *ret) {
    if (why->code == ERR_PERMISSION_DENIED) {
        remote_failure_set(ret, PROVIDER_FORBIDDEN, "its address may not be asked", why);
    } else {
        remote_failure_set(ret, PROVIDER_UNREACHABLE, "it cannot be reached", why);
    }
}

/* One that is too long would be too long again. */
void failure_broken(const struct err *why, struct reply_failure *ret) {
    if (why->code == ERR_TOO_LARGE) {
        remote_failure_set(ret, MODEL_ANSWER_TOO_LONG, "its answer is not taken", why);
        ret->why.code = ERR_TOO_LARGE;
        ret->cut = false;
    } else {
        remote_failure_set(ret, PROVIDER_BROKEN, "its answer was cut off", why);
        ret->cut = true;
    }
}

void failure_redirected(const struct dialect *dialect, unsigned status,
                        struct reply_failure *ret) {
    ret->reason = PROVIDER_UNREACHABLE;
    err_set(&ret->why, ERR_UNAVAILABLE, "%s answered %u, a redirect, which is not followed",
            dialect->title, status);
}

/* --- an answer that is no stream ---------------------------------------------------------- */

/* Text that is not JSON becomes a JSON string, so that one function reads all vendors'
 * errors. */
static struct json body_of(struct str text, struct buf *room) {
    struct json body = {.kind = JSON_NONE};
    struct err e;
    if (json_read(text, &body, &e)) return body;
    struct str words = str_trim(text);
    if (words.len && json_put_str(room, words) && json_read(buf_str(room), &body, &e))
        return body;
    return (struct json){.kind = JSON_NONE};
}

/* The status is 200, but the response is neither a stream nor an error. */
static void set_no_stream(const char *title, struct str type, struct str text,
                          struct reply_failure *ret) {
    struct buf shown_type, shown;
    buf_init(&shown_type, ERR_TEXT_BYTES);
    buf_init(&shown, ERR_TEXT_BYTES);
    reply_append_safe(&shown_type, type, TYPE_MAX_BYTES);
    reply_append_safe(&shown, text, QUOTED_MAX_BYTES);
    err_set(&ret->why, ERR_UNAVAILABLE,
            "%s answered 200 with '" STR_FMT "' and no event stream (" STR_FMT
            "); check its base URL",
            title, STR_ARG(buf_str(&shown_type)), STR_ARG(buf_str(&shown)));
    buf_done(&shown_type);
    buf_done(&shown);
}

void failure_refused(const struct dialect *dialect, unsigned status, struct str type,
                     struct str text, struct reply_failure *ret) {
    struct buf room;
    buf_init(&room, 6 * text.len + 2); /* each byte may need an escape */
    struct json body = body_of(text, &room);
    struct json object = body.kind == JSON_ARRAY ? json_at(body, 0) : body;
    ret->reason = PROVIDER_BROKEN;
    if (status != 200) {
        reply_failure_of(dialect->title, status, body, ret);
    } else if (json_find(object, STR("error")).kind > JSON_NONE &&
               json_find(object, STR("error")).kind != JSON_NULL) {
        reply_failure_of(dialect->title, 0, body, ret);
    } else {
        set_no_stream(dialect->title, type, text, ret);
    }
    buf_done(&room);
}

/* --- streaming refused -------------------------------------------------------------------- */

/* Matches "stream", "streaming", "stream_options", but not "upstream". */
static bool names_stream(struct str text) {
    static const struct str word = STR_INIT("stream");
    for (size_t at; (at = str_find_nocase(text, word)) < text.len;) {
        char before = at ? text.at[at - 1] : ' ';
        bool inside = (before >= 'a' && before <= 'z') || (before >= 'A' && before <= 'Z');
        if (!inside) return true;
        text = str_skip(text, at + word.len);
    }
    return false;
}

bool failure_is_of_stream(const struct reply_failure *failure, unsigned status,
                          struct str text) {
    bool of_request = strcmp(failure->reason, PROVIDER_REJECTED) == 0 || status == 501;
    return status != 200 && of_request && names_stream(text);
}

bool failure_is_streamless(const struct dialect *dialect, unsigned status) {
    for (size_t i = 0; i < ARRAY_LEN(dialect->streamless); i++) {
        if (status && dialect->streamless[i] == status) return true;
    }
    return false;
}

/* --- who it was, and what helps ----------------------------------------------------------- */

/* The command that examines a provider; not suggested to an operator, who may be running it. */
#define TEST_COMMAND ": weir provider test "

/* `before` and `after` enclose the provider's name; `after` NULL: without the name. */
static const struct {
    const char *reason, *before, *after;
    bool tested; /* followed by TEST_COMMAND */
} advices[] = {
    {PROVIDER_UNREACHABLE, "check its base URL and the network", NULL, true},
    {PROVIDER_AUTH, "check its key", NULL, true},
    {PROVIDER_QUOTA, "check the account of the key of ", "", false},
    {PROVIDER_RATE_LIMITED, "ask again later, or give ", " a higher limit", false},
    {PROVIDER_OVERLOADED, "ask again later, or put another model after ", " in a chain", false},
    {MODEL_CONTEXT, "begin a new session, or ask a model of ", " that takes more", false},
};

static void add_advice(struct str name, struct failure_reader reader,
                       struct reply_failure *failure) {
    struct err seen = failure->why;
    for (size_t i = 0; i < ARRAY_LEN(advices); i++) {
        if (strcmp(advices[i].reason, failure->reason) != 0) continue;
        struct str said = err_text(&seen), shown = advices[i].after ? name : STR_EMPTY;
        bool tested = advices[i].tested && !reader.by_operator;
        if (str_ends(said, STR("."))) said = str_head(said, said.len - 1);
        err_set(&failure->why, seen.code, STR_FMT "; %s" STR_FMT "%s%s" STR_FMT, STR_ARG(said),
                advices[i].before, STR_ARG(shown), advices[i].after ? advices[i].after : "",
                tested ? TEST_COMMAND : "", STR_ARG(tested ? name : STR_EMPTY));
    }
}

static void hide_secrets(const struct remote *remote, struct err *why) {
    reply_hide(why, remote->options.settings.key);
    for (size_t i = 0; i < remote->header_count; i++) {
        if (remote->secret[i]) reply_hide(why, remote->headers[i].value);
    }
}

static void report_log(struct failure_reader reader, const struct reply_failure *failure) {
    char who[40] = "";
    if (reader.run) snprintf(who, sizeof who, "run %" PRIu64 ": ", reader.run);
    log_often(LOG_WARNING, "%s%s (%s)", who, failure->why.text, failure->reason);
}

static const struct remote_reason *reason_of_party(const struct remote_party *party,
                                                   const struct reply_failure *failure) {
    const char *of = failure->cut ? REMOTE_CUT : failure->reason;
    for (size_t i = 0; party && i < party->reason_count; i++) {
        if (strcmp(party->reasons[i].of, of) == 0) return &party->reasons[i];
    }
    return NULL;
}

/* Everything that is known, for the operator. */
static void word_fully(const struct remote *remote, struct failure_reader reader,
                       struct reply_failure *failure) {
    const struct remote_party *party = remote->options.party;
    const struct remote_reason *row = reason_of_party(party, failure);
    struct str name = str_head(remote->options.name, NAME_MAX_BYTES);
    err_add(&failure->why, "%s '" STR_FMT "'", remote_noun(&remote->options), STR_ARG(name));
    if (!party) add_advice(name, reader, failure);
    if (row) failure->reason = row->reason;
    if (!reader.by_operator) report_log(reader, failure);
}

/* What such a server says of its own failure may be shown to its callers. */
static void word_of_party(const struct remote *remote, const struct remote_reason *row,
                          const struct err *said, struct reply_failure *failure) {
    err_set(&failure->why, failure->why.code, "the %s '" STR_FMT "' %s" STR_FMT,
            remote_noun(&remote->options),
            STR_ARG(str_head(remote->options.name, NAME_MAX_BYTES)),
            row->sentence ? row->sentence : "failed: ",
            STR_ARG(row->sentence ? STR_EMPTY : err_text(said)));
}

void failure_word(const struct remote *remote, struct failure_reader reader,
                  struct reply_failure *failure) {
    const struct remote_reason *row = reason_of_party(remote->options.party, failure);
    hide_secrets(remote, &failure->why);
    const struct err said = failure->why;
    word_fully(remote, reader, failure);
    if (reader.by_operator) return;
    if (row) {
        word_of_party(remote, row, &said, failure);
        return;
    }
    struct str sentence =
        failure->said ? err_text(&said) : reply_reason_sentence(str_from(failure->reason));
    err_set(&failure->why, failure->why.code, STR_FMT, STR_ARG(sentence));
}

void failure_word_unasked(const struct remote *remote, struct failure_reader reader,
                          struct reply_failure *failure) {
    struct err own = failure->why;
    hide_secrets(remote, &failure->why);
    word_fully(remote, reader, failure);
    if (!reader.by_operator) failure->why = own;
}
