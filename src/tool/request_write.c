#include "tool/request_write.h"

#include "tool/template.h"

/* authorization, user-agent, traceparent, tracestate, accept, content-type */
#define HEADERS_OF_OURS 6
#define URL_MAX_BYTES (16 * KIB)
#define HEADERS_MAX_BYTES (32 * KIB)
#define NAME_BYTES 128
#define NAME_SHOWN_BYTES 40

/* One request while it is being written. */
struct filling {
    const struct request_options *options;
    const struct tool_request *call;
    struct json args;
};

/* GET, HEAD and DELETE carry their arguments in the query. */
static bool request_has_no_body(struct str method) {
    return str_equal(method, STR("GET")) || str_equal(method, STR("HEAD")) ||
           str_equal(method, STR("DELETE"));
}

/* --- pieces ------------------------------------------------------------------------------- */

static struct str secret_of(const struct request_options *options, struct str name) {
    for (size_t i = 0; i < options->secret_count; i++) {
        if (str_equal(options->secrets[i].name, name)) return options->secrets[i].value;
    }
    return STR_EMPTY;
}

static struct str of_call(const struct tool_request *call, struct str name) {
    const struct str values[TEMPLATE_CALL_COUNT] = {[TEMPLATE_USER] = call->user,
                                                    [TEMPLATE_SESSION] = call->session,
                                                    [TEMPLATE_WORKSPACE] = call->workspace,
                                                    [TEMPLATE_AGENT] = call->agent,
                                                    [TEMPLATE_CALL_ID] = call->id};
    enum template_call which;
    return template_call_find(name, &which) ? values[which] : STR_EMPTY;
}

/* Write a string without its quotes, null as nothing, any other value as JSON. */
static void put_value(struct json value, struct buf *out) {
    if (value.kind == JSON_STRING) {
        json_text(value, out);
    } else if (value.kind != JSON_NULL && value.kind != JSON_NONE) {
        json_compact(value.raw, out);
    }
}

static void put_piece(const struct filling *filling, const struct template_piece *piece,
                      struct buf *out) {
    switch (piece->kind) {
    case TEMPLATE_TEXT: buf_append(out, piece->text); break;
    case TEMPLATE_ARGUMENT: put_value(json_find(filling->args, piece->text), out); break;
    case TEMPLATE_SECRET: buf_append(out, secret_of(filling->options, piece->text)); break;
    case TEMPLATE_OF_CALL: buf_append(out, of_call(filling->call, piece->text)); break;
    }
}

static bool request_write_fill(const struct filling *filling, struct str text, struct buf *out,
                               struct err *e) {
    struct template_piece piece;
    while (text.len) {
        if (!template_next(&text, &piece, e)) return false;
        put_piece(filling, &piece, out);
    }
    return true;
}

/* --- which arguments a template names ----------------------------------------------------- */

static bool names(struct str text, struct json key) {
    struct template_piece piece;
    struct err e;
    while (text.len && template_next(&text, &piece, &e)) {
        if (piece.kind == TEMPLATE_ARGUMENT && json_is(key, piece.text)) return true;
    }
    return false;
}

static bool is_named(const struct request_options *options, struct json key) {
    bool named = names(options->url, key);
    for (size_t i = 0; i < options->query_count; i++)
        named = named || names(options->query[i].value, key);
    for (size_t i = 0; i < options->header_count; i++)
        named = named || names(options->headers[i].value, key);
    return named;
}

/* --- the URL ------------------------------------------------------------------------------ */

static bool is_dots(struct str segment) {
    return str_equal(segment, STR(".")) || str_equal(segment, STR(".."));
}

/* Refuse a path with segments that would lead to another path than the template's. */
static bool check_path(struct str url, struct err *e) {
    struct str rest = str_skip(url, str_find(url, STR("://")) + 3);
    rest = str_head(rest, str_find_byte(rest, '?'));
    while (rest.at && rest.len) {
        if (is_dots(str_split(rest, '/', &rest)))
            return err_set(e, ERR_INVALID_ARGUMENT,
                           "an argument makes '.' or '..' of a part of the path");
    }
    return true;
}

static bool put_in_url(const struct filling *filling, const struct template_piece *piece,
                       struct buf *out, struct err *e) {
    struct buf value;
    bool in_path = str_find_byte(buf_str(out), '?') == out->len;
    buf_init(&value, URL_MAX_BYTES);
    put_piece(filling, piece, &value);
    bool good = value.len > 0 || !in_path ||
                err_set(e, ERR_INVALID_ARGUMENT,
                        "'" STR_FMT "' is empty, and stands in the path of the address",
                        STR_ARG(str_head(piece->text, NAME_SHOWN_BYTES)));
    if (good && !buf_ok(&value)) good = err_set(e, ERR_INVALID_ARGUMENT, "it is too long");
    if (good) buf_append_percent(out, buf_str(&value), "-._~");
    buf_done(&value);
    return good;
}

static bool put_template(const struct filling *filling, struct buf *out, struct err *e) {
    struct template_piece piece;
    struct str text = filling->options->url;
    while (text.len) {
        if (!template_next(&text, &piece, e)) return false;
        if (piece.kind == TEMPLATE_TEXT) {
            buf_append(out, piece.text);
        } else if (!put_in_url(filling, &piece, out, e)) {
            return false;
        }
    }
    return true;
}

static void put_parameter(struct str name, struct str value, struct buf *out) {
    bool first = str_find_byte(buf_str(out), '?') == out->len;
    buf_append_byte(out, first ? '?' : '&');
    buf_append_percent(out, name, "-._~");
    buf_append_byte(out, '=');
    buf_append_percent(out, value, "-._~");
}

static void put_one_argument(struct str name, struct json value, struct buf *out) {
    struct buf text;
    buf_init(&text, URL_MAX_BYTES);
    put_value(value, &text);
    put_parameter(name, buf_str(&text), out);
    out->full = out->full || text.full;
    buf_done(&text);
}

/* An array becomes one parameter per item; an absent value becomes none. */
static void put_argument(struct str name, struct json value, struct buf *out) {
    struct json item;
    struct json_reader items = json_enter(value);
    if (json_is_absent(value)) return;
    if (value.kind != JSON_ARRAY) {
        put_one_argument(name, value, out);
        return;
    }
    while (json_next_item(&items, &item)) put_one_argument(name, item, out);
}

static bool put_query(const struct filling *filling, struct buf *out, struct err *e) {
    const struct request_options *options = filling->options;
    for (size_t i = 0; i < options->query_count; i++) {
        const struct request_field *field = &options->query[i];
        struct template_piece piece;
        struct buf value;
        if (template_is_one(field->value, &piece) && piece.kind == TEMPLATE_ARGUMENT) {
            put_argument(field->name, json_find(filling->args, piece.text), out);
            continue;
        }
        buf_init(&value, URL_MAX_BYTES);
        bool filled = request_write_fill(filling, field->value, &value, e);
        if (filled) put_parameter(field->name, buf_str(&value), out);
        out->full = out->full || value.full;
        buf_done(&value);
        if (!filled) return false;
    }
    return true;
}

static void put_others(const struct filling *filling, struct buf *out) {
    struct json key, value;
    struct json_reader members = json_enter(filling->args);
    while (json_next_member(&members, &key, &value)) {
        struct buf name;
        if (is_named(filling->options, key)) continue;
        buf_init(&name, KIB);
        if (json_text(key, &name)) put_argument(buf_str(&name), value, out);
        buf_done(&name);
    }
}

static bool write_url(const struct filling *filling, struct buf *out, struct err *e) {
    const struct request_options *options = filling->options;
    bool by_itself =
        !options->has_query && !options->body.len && request_has_no_body(options->method);
    if (!put_template(filling, out, e) || !check_path(buf_str(out), e) ||
        !put_query(filling, out, e))
        return false;
    if (by_itself) put_others(filling, out);
    return buf_ok(out) || err_set(e, ERR_INVALID_ARGUMENT,
                                  "the arguments make an address of more than 16 KiB");
}

/* --- headers ------------------------------------------------------------------------------ */

static bool check_header(struct str name, struct str value, struct err *e) {
    for (size_t i = 0; i < value.len; i++) {
        unsigned char byte = (unsigned char)value.at[i];
        if (byte < ' ' || byte > '~')
            return err_set(e, ERR_INVALID_ARGUMENT,
                           "an argument puts a character into the header '" STR_FMT
                           "' that no header carries",
                           STR_ARG(str_head(name, NAME_SHOWN_BYTES)));
    }
    return true;
}

static void add_header(struct request_text *text, struct str name, struct str value) {
    if (value.len && text->header_count < REQUEST_HEADERS_MAX)
        text->headers[text->header_count++] = (struct http_header){name, value};
}

static bool has_header(const struct request_options *options, struct str name) {
    for (size_t i = 0; i < options->header_count; i++) {
        if (str_equal_nocase(options->headers[i].name, name)) return true;
    }
    return false;
}

/* The trace goes on to the operator's own servers, unless a header of the settings says another. */
static void add_trace(const struct filling *filling, struct request_text *ret) {
    const struct trace_context *trace = filling->call->trace;
    if (!trace || has_header(filling->options, STR("traceparent"))) return;
    trace_context_write(trace, ret->parent);
    add_header(ret, STR("traceparent"), str_from(ret->parent));
    struct str state = str_head(trace->state, sizeof(ret->state));
    if (state.len) memcpy(ret->state, state.at, state.len);
    add_header(ret, STR("tracestate"), str_of(ret->state, state.len));
}

/* The buffer may move while it grows, so values are kept as offsets until all are written. */
static bool write_headers(const struct filling *filling, struct request_text *ret,
                          struct err *e) {
    const struct request_options *options = filling->options;
    size_t starts[REQUEST_HEADERS_MAX], count = 0;
    struct buf *room = &ret->header_text;
    for (; count < options->header_count && count < REQUEST_HEADERS_MAX - HEADERS_OF_OURS;
         count++) {
        starts[count] = room->len;
        if (!request_write_fill(filling, options->headers[count].value, room, e)) return false;
    }
    size_t end = room->len;
    if (options->key.len) {
        buf_append(room, STR("Bearer "));
        buf_append(room, options->key);
    }
    if (!buf_ok(room))
        return err_set(e, ERR_INVALID_ARGUMENT, "the arguments make a header too long");
    for (size_t i = 0; i < count; i++) {
        size_t next = i + 1 < count ? starts[i + 1] : end;
        struct str name = options->headers[i].name;
        struct str value = str_skip(str_head(buf_str(room), next), starts[i]);
        if (!check_header(name, value, e)) return false;
        add_header(ret, name, str_trim(value));
    }
    add_header(ret, STR("authorization"), str_skip(buf_str(room), end));
    add_header(ret, STR("user-agent"), STR("weir (tools)"));
    add_trace(filling, ret);
    if (!has_header(options, STR("accept")))
        add_header(ret, STR("accept"), STR("application/json, text/plain;q=0.9, */*;q=0.5"));
    if (ret->body.len && !has_header(options, STR("content-type")))
        add_header(ret, STR("content-type"), STR("application/json"));
    return true;
}

/* --- the body ----------------------------------------------------------------------------- */

static bool write_body_value(const struct filling *filling, struct json value,
                             struct json_writer *w, struct err *e);

/* An absent argument is written as nothing. */
static bool write_body_text(const struct filling *filling, struct json value,
                            struct json_writer *w, bool *ret_written, struct err *e) {
    struct template_piece piece;
    struct buf text, filled;
    buf_init(&text, SIZE_MAX);
    buf_init(&filled, SIZE_MAX);
    json_text(value, &text);
    bool done = true;
    *ret_written = true;
    if (template_is_one(buf_str(&text), &piece) && piece.kind == TEMPLATE_ARGUMENT) {
        struct json argument = json_find(filling->args, piece.text);
        *ret_written = argument.kind != JSON_NONE;
        if (*ret_written) json_write_raw(w, argument.raw);
    } else {
        done = request_write_fill(filling, buf_str(&text), &filled, e);
        if (done) json_write_str(w, buf_str(&filled));
    }
    buf_done(&text);
    buf_done(&filled);
    return done;
}

/* A member whose argument is absent is left out. */
static bool write_body_member(const struct filling *filling, struct json key, struct json value,
                              struct json_writer *w, struct err *e) {
    struct template_piece piece;
    struct buf text;
    buf_init(&text, SIZE_MAX);
    json_text(value, &text);
    bool absent = template_is_one(buf_str(&text), &piece) && piece.kind == TEMPLATE_ARGUMENT &&
                  json_find(filling->args, piece.text).kind == JSON_NONE;
    buf_clear(&text);
    json_text(key, &text);
    if (!absent) json_key(w, buf_str(&text));
    bool done = absent || write_body_value(filling, value, w, e);
    buf_done(&text);
    return done;
}

/* Recursive; the template comes from the settings and has limited depth. */
static bool write_body_value(const struct filling *filling, struct json value,
                             struct json_writer *w, struct err *e) {
    struct json key, item;
    struct json_reader inside = json_enter(value);
    bool written;
    if (value.kind == JSON_STRING) {
        if (!write_body_text(filling, value, w, &written, e)) return false;
        if (!written) json_write_null(w);
        return true;
    }
    if (value.kind == JSON_OBJECT) {
        json_open_object(w);
        while (json_next_member(&inside, &key, &item)) {
            if (!write_body_member(filling, key, item, w, e)) return false;
        }
        json_close(w);
    } else if (value.kind == JSON_ARRAY) {
        json_open_array(w);
        while (json_next_item(&inside, &item)) {
            if (!write_body_value(filling, item, w, e)) return false;
        }
        json_close(w);
    } else {
        json_write_raw(w, value.raw);
    }
    return true;
}

static void write_others(const struct filling *filling, struct json_writer *w) {
    struct json key, value;
    struct json_reader members = json_enter(filling->args);
    json_open_object(w);
    while (json_next_member(&members, &key, &value)) {
        struct buf name;
        if (is_named(filling->options, key)) continue;
        buf_init(&name, SIZE_MAX);
        json_text(key, &name);
        json_key(w, buf_str(&name));
        json_write_raw(w, value.raw);
        buf_done(&name);
    }
    json_close(w);
}

static bool request_write_body(const struct filling *filling, struct buf *out, struct err *e) {
    const struct request_options *options = filling->options;
    struct json_writer w = json_writer(out);
    struct json body;
    if (!options->body.len) {
        if (!request_has_no_body(options->method)) write_others(filling, &w);
        return true;
    }
    return json_read(options->body, &body, e) && write_body_value(filling, body, &w, e);
}

static bool check_secrets(const struct request_options *options, struct err *e) {
    for (size_t i = 0; i < options->secret_count; i++) {
        if (!options->secrets[i].value.len)
            return err_set(e, ERR_FAILED_PRECONDITION, "the variable " STR_FMT " is not set",
                           STR_ARG(str_head(options->secrets[i].name, NAME_BYTES)));
    }
    return true;
}

/* --- public functions --------------------------------------------------------------------- */

bool request_write(const struct request_options *options, const struct tool_request *call,
                   struct request_text *ret, struct err *e) {
    struct filling filling = {options, call, json_of(call->args)};
    *ret = (struct request_text){.header_count = 0};
    buf_init(&ret->url, URL_MAX_BYTES);
    buf_init(&ret->body, SIZE_MAX);
    buf_init(&ret->header_text, HEADERS_MAX_BYTES);
    return check_secrets(options, e) && write_url(&filling, &ret->url, e) &&
           request_write_body(&filling, &ret->body, e) && write_headers(&filling, ret, e);
}

void request_text_done(struct request_text *text) {
    buf_done(&text->url);
    buf_done(&text->body);
    buf_done(&text->header_text);
}
