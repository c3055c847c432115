#include "rpc/status.h"

#include "wire/grpc.h"

#include <assert.h>

/* gzip joins this list together with the inflating in call.c. */
static const struct field head[] = {
    {STR_INIT("content-type"), STR_INIT("application/grpc")},
    {STR_INIT("grpc-accept-encoding"), STR_INIT("identity")},
};

static const struct field ok[] = {{STR_INIT("grpc-status"), STR_INIT("0")}};

void status_head(struct exchange *exchange) {
    exchange_head(exchange, 200, head, ARRAY_LEN(head));
}

struct section {
    struct field fields[ARRAY_LEN(head) + 2 + STATUS_EXTRA_MAX];
    size_t count;
};

static void add(struct section *section, struct str name, struct str value) {
    section->fields[section->count++] = (struct field){name, value};
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
                const struct field *extra, size_t extra_count) {
    assert(extra_count <= STATUS_EXTRA_MAX);
    bool only = !exchange_head_sent(exchange);
    if (!only && code == ERR_NONE && extra_count == 0) {
        exchange_end(exchange, ok, ARRAY_LEN(ok));
        return;
    }

    struct section section = {.count = 0};
    for (size_t i = 0; only && i < ARRAY_LEN(head); i++)
        add(&section, head[i].name, head[i].value);

    char digits[4];
    struct buf number = {.at = digits, .room = sizeof(digits), .max_bytes = sizeof(digits)};
    buf_append_u64(&number, (uint64_t)err_kinds[code].grpc_status);
    add(&section, STR("grpc-status"), buf_str(&number));

    struct buf text;
    buf_init(&text, GRPC_STATUS_MESSAGE_MAX_BYTES);
    if (code != ERR_NONE && message.len && grpc_message_encode(&text, message))
        add(&section, STR("grpc-message"), buf_str(&text));

    for (size_t i = 0; i < extra_count; i++) add(&section, extra[i].name, extra[i].value);
    send_section(exchange, &section, only);
    buf_done(&text);
}

void status_http(struct exchange *exchange, int status) {
    static const struct field fields[] = {
        {STR_INIT("content-length"), STR_INIT("0")},
        {STR_INIT("allow"), STR_INIT("POST")},
    };
    exchange_head(exchange, status, fields, status == 405 ? 2 : 1);
    exchange_end(exchange, NULL, 0);
}
