#include "sidecar/helpers.h"

#include "sidecar/refusal.h"

#define BODY_MAX_BYTES (8 * MIB)

static struct str helpers_header(const struct exchange *exchange, struct str name) {
    const struct field *field = exchange_field(exchange, name);
    return field ? str_trim(field->value) : (struct str){NULL, 0};
}

bool helpers_allow(const struct exchange *exchange, bool any_host) {
    const struct page_rules rules = {.any_host = any_host};
    const struct page_question asked = {.reach = exchange_reach(exchange),
                                        .authority = exchange_authority(exchange),
                                        .host = helpers_header(exchange, STR("host")),
                                        .origin = helpers_header(exchange, STR("origin")),
                                        .site =
                                            helpers_header(exchange, STR("sec-fetch-site"))};
    return page_judge(&rules, &asked) == PAGE_FINE;
}

static void helpers_health(struct route_call *call, void *ctx) {
    struct buf body;
    buf_init(&body, 1 * MIB);
    sidecar_write_health(ctx, true, &body);
    route_reply(call, 200, STR("application/json"), buf_str(&body));
    buf_done(&body);
}

static const struct route rows[] = {
    {STR_INIT("GET"), STR_INIT("/health"), helpers_health, ROUTE_OPEN, ROUTE_HEAD},
    {STR_INIT("POST"), STR_INIT("/cost"), helpers_cost, ROUTE_GUARDED, ROUTE_BODY},
    {STR_INIT("POST"), STR_INIT("/a2a/{peer}"), helpers_a2a, ROUTE_GUARDED, ROUTE_BODY},
};

static const struct field always[] = {
    {STR_INIT("x-runtime-contract-version"), STR_INIT("1")},
};

void helpers_init(struct sidecar *sidecar) {
    sidecar->helper_table = (struct route_table){.rows = rows,
                                                 .row_count = ARRAY_LEN(rows),
                                                 .always = always,
                                                 .always_count = ARRAY_LEN(always),
                                                 .body_max_bytes = BODY_MAX_BYTES,
                                                 .body_stretch_ms = 10000,
                                                 .body_stretch_bytes = 10 * KIB,
                                                 .guard = route_trust,
                                                 .ctx = sidecar};
}
