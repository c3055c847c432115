#include "client/grpc_reply.h"

#include "wire/grpc.h"

#define TEXT_MAX_BYTES (4 * KIB)
#define SHOWN_BYTES 100

void grpc_reply_init(struct grpc_reply *reply, size_t message_max_bytes) {
    *reply = (struct grpc_reply){0};
    grpc_reader_init(&reply->reader,
                     message_max_bytes ? message_max_bytes : GRPC_MESSAGE_MAX_BYTES);
    buf_init(&reply->type, TEXT_MAX_BYTES);
    buf_init(&reply->encoding, TEXT_MAX_BYTES);
    buf_init(&reply->status, TEXT_MAX_BYTES);
    buf_init(&reply->message, TEXT_MAX_BYTES);
    buf_init(&reply->said, 4 * TEXT_MAX_BYTES);
}

void grpc_reply_done(struct grpc_reply *reply) {
    grpc_reader_done(&reply->reader);
    buf_done(&reply->type);
    buf_done(&reply->encoding);
    buf_done(&reply->status);
    buf_done(&reply->message);
    buf_done(&reply->said);
}

/* --- fields ------------------------------------------------------------------------------- */

/* The last value of a name wins. It is cut to a useful length. */
static void reply_keep(struct buf *into, struct str value) {
    buf_clear(into);
    buf_append(into, str_head(value, TEXT_MAX_BYTES));
}

bool grpc_reply_field(struct grpc_reply *reply, struct str name, struct str value) {
    const struct {
        struct str name;
        struct buf *into;
    } own[] = {
        {STR("content-type"), &reply->type},
        {STR("grpc-encoding"), &reply->encoding},
        {STR("grpc-status"), &reply->status},
        {STR("grpc-message"), &reply->message},
    };
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        if (!str_equal(name, own[i].name)) continue;
        reply_keep(own[i].into, value);
        return false;
    }
    return !str_starts(name, STR("grpc-")) || str_equal(name, STR("grpc-status-details-bin"));
}

/* --- the head ----------------------------------------------------------------------------- */

/* The code for an HTTP status without a grpc-status. */
static enum err_code code_of_http(unsigned status) {
    static const struct {
        unsigned status;
        enum err_code code;
    } rows[] = {
        /* clang-format off */
        {400, ERR_INTERNAL},
        {401, ERR_UNAUTHENTICATED},
        {403, ERR_PERMISSION_DENIED},
        {404, ERR_UNIMPLEMENTED},
        {429, ERR_UNAVAILABLE},
        {502, ERR_UNAVAILABLE},
        {503, ERR_UNAVAILABLE},
        {504, ERR_UNAVAILABLE},
        /* clang-format on */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].status == status) return rows[i].code;
    }
    return ERR_UNKNOWN;
}

bool grpc_reply_head(struct grpc_reply *reply, unsigned http_status, struct err *e) {
    reply->http_status = http_status;
    if (reply->status.len) return true; /* the status alone is the answer */
    if (http_status != 200)
        return err_set(e, code_of_http(http_status),
                       "the server answers with the HTTP status %u and without a grpc-status",
                       http_status);
    if (grpc_content_type_ok(buf_str(&reply->type))) return true;
    return err_set(e, ERR_UNKNOWN,
                   "the server answers with content-type '" STR_FMT
                   "', which is not gRPC; is this its gRPC port?",
                   STR_ARG(str_head(buf_str(&reply->type), SHOWN_BYTES)));
}

/* --- messages ----------------------------------------------------------------------------- */

enum grpc_step grpc_reply_next(struct grpc_reply *reply, struct str *bytes, struct str *ret,
                               struct err *e) {
    struct grpc_message message;
    enum grpc_step step = grpc_next(&reply->reader, bytes, &message, e);
    if (step != GRPC_MESSAGE) return step;
    *ret = message.bytes;
    if (!message.compressed) return GRPC_MESSAGE;
    err_set(e, ERR_INTERNAL,
            "the server compresses its messages (grpc-encoding '" STR_FMT
            "'), although the request forbids it: switch its compression off",
            STR_ARG(str_head(buf_str(&reply->encoding), SHOWN_BYTES)));
    return GRPC_BROKEN;
}

/* --- the end ------------------------------------------------------------------------------ */

/* The code for a reset stream: RFC 9113 7 mapped to gRPC. */
static enum err_code code_of_reset(uint32_t code) {
    static const enum err_code codes[] = {
        /* clang-format off */
        [0x0] = ERR_INTERNAL,           /* NO_ERROR */
        [0x1] = ERR_INTERNAL,           /* PROTOCOL_ERROR */
        [0x2] = ERR_INTERNAL,           /* INTERNAL_ERROR */
        [0x3] = ERR_INTERNAL,           /* FLOW_CONTROL_ERROR */
        [0x4] = ERR_INTERNAL,           /* SETTINGS_TIMEOUT */
        [0x5] = ERR_UNKNOWN,            /* STREAM_CLOSED */
        [0x6] = ERR_INTERNAL,           /* FRAME_SIZE_ERROR */
        [0x7] = ERR_UNAVAILABLE,        /* REFUSED_STREAM */
        [0x8] = ERR_CANCELLED,          /* CANCEL */
        [0x9] = ERR_INTERNAL,           /* COMPRESSION_ERROR */
        [0xa] = ERR_INTERNAL,           /* CONNECT_ERROR */
        [0xb] = ERR_RESOURCE_EXHAUSTED, /* ENHANCE_YOUR_CALM */
        [0xc] = ERR_PERMISSION_DENIED,  /* INADEQUATE_SECURITY */
        /* clang-format on */
    };
    return code < ARRAY_LEN(codes) ? codes[code] : ERR_UNKNOWN;
}

/* A number unknown to gRPC is ERR_UNKNOWN. */
static enum err_code code_of_status(struct str digits) {
    uint64_t status;
    bool known = str_to_u64(digits, &status) && status <= ERR_UNAUTHENTICATED;
    return known ? (enum err_code)status : ERR_UNKNOWN;
}

static void say_status(struct grpc_reply *reply, enum err_code code, struct err *why) {
    buf_clear(&reply->said);
    grpc_message_decode(&reply->said, buf_str(&reply->message));
    if (reply->said.len)
        err_set(why, code, STR_FMT, STR_ARG(buf_str(&reply->said)));
    else
        err_set(why, code, "the server answers %s, without a word", err_kinds[code].name);
}

/* Judge a stream that ended in order, with or without a status. */
static void judge_status(struct grpc_reply *reply, struct grpc_call_end *ret, struct err *why) {
    enum err_code code = code_of_status(buf_str(&reply->status));
    ret->from_server = reply->status.len > 0;
    if (!ret->from_server) {
        ret->code = ERR_UNKNOWN;
        err_set(why, ERR_UNKNOWN, "the server ended its answer without a grpc-status");
    } else if (code != ERR_NONE) {
        ret->code = code;
        say_status(reply, code, why);
        ret->said = buf_str(&reply->said);
    } else if (!grpc_end(&reply->reader, why)) {
        ret->from_server = false;
        ret->code = why->code;
    }
}

void grpc_reply_end(struct grpc_reply *reply, const struct h2_end *end,
                    struct grpc_call_end *ret, struct err *why) {
    *ret = (struct grpc_call_end){.never_seen = end->never_seen};
    if (end->why) {
        *why = *end->why;
        ret->code = why->code = end->reset ? code_of_reset(end->code) : why->code;
    } else {
        judge_status(reply, ret, why);
    }
    if (ret->code != ERR_NONE) ret->text = err_text(why);
}
