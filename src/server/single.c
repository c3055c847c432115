#include "server/single.h"

static const struct str singles[] = {
    STR_INIT("authorization"),
    STR_INIT("content-type"),
    STR_INIT("content-length"),
    STR_INIT("host"),
    STR_INIT("origin"),
    STR_INIT("sec-fetch-site"),
    STR_INIT("access-control-request-method"),
    STR_INIT("x-session-id"),
    STR_INIT("idempotency-key"),
    STR_INIT("x-idempotency-key"),
    STR_INIT("x-runtime-contract-version"),
    STR_INIT("x-weir-on-disconnect"),
    STR_INIT("last-event-id"),
    STR_INIT("x-request-id"),
    STR_INIT("x-trace-id"),
    STR_INIT("expect"),
};

/* Fields for framing, routing, modifiers, authentication and content type, in addition to those
 * above. */
static const struct str leaders[] = {
    STR_INIT("transfer-encoding"),
    STR_INIT("trailer"),
    STR_INIT("te"),
    STR_INIT("connection"),
    STR_INIT("upgrade"),
    STR_INIT("cache-control"),
    STR_INIT("content-encoding"),
    STR_INIT("content-range"),
    STR_INIT("cookie"),
    STR_INIT("max-forwards"),
    STR_INIT("pragma"),
    STR_INIT("proxy-authorization"),
    STR_INIT("range"),
};

static bool single_is_one_of(struct str name, const struct str *names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (str_equal_nocase(name, names[i])) return true;
    }
    return false;
}

struct str single_repeated(const struct field *fields, size_t count) {
    for (size_t i = 1; i < count; i++) {
        if (!single_is_one_of(fields[i].name, singles, ARRAY_LEN(singles))) continue;
        for (size_t k = 0; k < i; k++) {
            if (str_equal_nocase(fields[k].name, fields[i].name)) return fields[i].name;
        }
    }
    return STR_EMPTY;
}

bool single_may_trail(struct str name) {
    return !single_is_one_of(name, singles, ARRAY_LEN(singles)) &&
           !single_is_one_of(name, leaders, ARRAY_LEN(leaders));
}
