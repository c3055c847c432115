#include "rpc/status.h"

#include "wire/grpc.h"

#define HEAD_FIELDS_MAX 3 /* the fields of every head, and grpc-encoding */
#define END_FIELDS_MAX 2  /* grpc-status, grpc-message */

static const struct field head[] = {
    {STR_INIT("content-type"), STR_INIT("application/grpc")},
    {STR_INIT("grpc-accept-encoding"), STR_INIT("identity,gzip")},
};

static const struct field gzip_encoding = {STR_INIT("grpc-encoding"), STR_INIT("gzip")};

static const struct field ok[] = {{STR_INIT("grpc-status"), STR_INIT("0")}};

struct section {
    struct field fields[HEAD_FIELDS_MAX + END_FIELDS_MAX + 2 * STATUS_EXTRA_MAX];
    size_t count;
};

static void status_add(struct section *section, struct field field) {
    section->fields[section->count++] = field;
}

static void add_head(struct section *section) {
    for (size_t i = 0; i < ARRAY_LEN(head); i++) status_add(section, head[i]);
}

static void add_extra(struct section *section, const struct status_extra *extra) {
    for (size_t i = 0; extra && i < extra->count; i++) status_add(section, extra->fields[i]);
}

void status_head(struct exchange *exchange, bool gzip, const struct status_extra *always,
                 const struct status_extra *extra) {
    struct section section = {.count = 0};
    add_head(&section);
    if (gzip) status_add(&section, gzip_encoding);
    add_extra(&section, always);
    add_extra(&section, extra);
    exchange_head(exchange, 200, section.fields, section.count);
}

static void send_section(struct exchange *exchange, const struct section *section, bool only) {
    if (!only) {
        exchange_end(exchange, section->fields, section->count);
        return;
    }
    exchange_head(exchange, 200, section->fields, section->count);
    exchange_end(exchange, NULL, 0);
}

void status_end(struct exchange *exchange, enum err_code code, struct str message,
                const struct status_extra *extra) {
    bool only = !exchange_head_sent(exchange);
    if (!only && code == ERR_NONE && !extra) {
        exchange_end(exchange, ok, ARRAY_LEN(ok));
        return;
    }

    struct section section = {.count = 0};
    if (only) add_head(&section);

    char digits[4];
    struct buf number = {.at = digits, .room = sizeof(digits), .max_bytes = sizeof(digits)};
    buf_append_u64(&number, (uint64_t)err_kinds[code].grpc_status);
    status_add(&section, (struct field){STR("grpc-status"), buf_str(&number)});

    struct buf text;
    buf_init(&text, GRPC_STATUS_MESSAGE_MAX_BYTES);
    if (code != ERR_NONE && message.len && grpc_message_encode(&text, message))
        status_add(&section, (struct field){STR("grpc-message"), buf_str(&text)});

    add_extra(&section, extra);
    send_section(exchange, &section, only);
    buf_done(&text);
}

void status_http(struct exchange *exchange, int status) {
    static const struct str text =
        STR_INIT("this port speaks gRPC: POST, with content-type application/grpc\n");
    char digits[4];
    struct buf length = {.at = digits, .room = sizeof(digits), .max_bytes = sizeof(digits)};
    buf_append_u64(&length, text.len);
    const struct field fields[] = {
        {STR("content-type"), STR("text/plain")},
        {STR("content-length"), buf_str(&length)},
        {STR("allow"), STR("POST")},
    };
    exchange_head(exchange, status, fields, status == 405 ? 3 : 2);
    exchange_send(exchange, text);
}
