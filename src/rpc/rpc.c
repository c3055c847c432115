#include "rpc/rpc.h"

#include "base/map.h"
#include "base/mem.h"
#include "metrics/metrics.h"
#include "rpc/call.h"
#include "rpc/retry_info.h"

#include <assert.h>
#include <stdlib.h>

#define NEVER UINT64_MAX
#define STALL_MS (30 * 1000)
#define NS_PER_MS 1000000u

/* A method, found by its path, and the service it belongs to. */
struct site_row {
    const struct rpc_method *method;
    const struct rpc_service *service;
};

/* --- sites ------------------------------------------------------------------------------- */

static size_t count_methods(const struct rpc_service *services, size_t service_count) {
    size_t count = 0;
    for (size_t i = 0; i < service_count; i++) count += services[i].method_count;
    return count;
}

bool rpc_service_ok(const struct rpc_service *service) {
    for (size_t i = 0; i < service->method_count; i++) {
        enum rpc_auth auth = service->methods[i].auth;
        if (auth != RPC_OPEN && (auth != RPC_TOKEN || !service->authenticate)) return false;
    }
    return true;
}

static void fill_tables(struct rpc_site *site, const struct rpc_service *services,
                        size_t service_count) {
    struct site_row *row = site->rows;
    for (size_t i = 0; i < service_count; i++) {
        const struct rpc_service *service = &services[i];
        void *before = map_put(site->services, service->name, (void *)service);
        assert(!before && rpc_service_ok(service));
        for (size_t j = 0; j < service->method_count; j++, row++) {
            *row = (struct site_row){&service->methods[j], service};
            before = map_put(site->methods, row->method->path, row);
            assert(!before && row->method->handler->open);
        }
    }
}

static void on_stall(void *ctx);

struct rpc_site *rpc_site_new(struct loop *loop, const struct rpc_service *services,
                              size_t service_count) {
    struct rpc_site *site = MEM_NEW(struct rpc_site);
    site->loop = loop;
    site->methods = map_new();
    site->services = map_new();
    site->rows = mem_zero(count_methods(services, service_count), sizeof(struct site_row));
    site->stall_ms = STALL_MS;
    list_init(&site->calls);
    timer_init(&site->stall, loop, on_stall, site);
    buf_init(&site->sink, SIZE_MAX / 2);
    fill_tables(site, services, service_count);
    return site;
}

void rpc_site_free(struct rpc_site *site) {
    if (!site) return;
    assert(list_empty(&site->calls));
    timer_stop(&site->stall);
    buf_done(&site->sink);
    for (size_t i = 0; i < site->always.count; i++) {
        text_done(&site->always_names[i]);
        text_done(&site->always_values[i]);
    }
    map_free(site->methods);
    map_free(site->services);
    free(site->rows);
    free(site);
}

#define CALL_OF(link_) CONTAINER_OF(link_, struct rpc_call, link)

void rpc_site_admit(struct rpc_site *site, enum rpc_effect first, struct str why) {
    site->admits = first;
    site->why_refused = why;
}

void rpc_site_warn(struct rpc_site *site) {
    site->stopping = true;
    LIST_EACH(&site->calls, link) call_say_stopping(CALL_OF(link));
}

/* A site that is still starting admits less. */
static void admit_no_more(struct rpc_site *site) {
    enum rpc_effect first = site->admits > RPC_READS ? site->admits : RPC_READS;
    rpc_site_admit(site, first, STR("the server is stopping"));
}

void rpc_site_stop(struct rpc_site *site) {
    admit_no_more(site);
    rpc_site_warn(site);
}

void rpc_site_cut(struct rpc_site *site) {
    admit_no_more(site);
    LIST_EACH(&site->calls, link) call_stop(CALL_OF(link));
}

void rpc_site_refused(struct rpc_site *site, rpc_refused_fn *fn, void *ctx) {
    site->refused = fn;
    site->refused_ctx = ctx;
}

void rpc_site_rates(struct rpc_site *site, struct rate_limits *rates) {
    site->rates = rates;
}

void rpc_site_stall_limit(struct rpc_site *site, uint64_t limit_ms) {
    assert(limit_ms > 0);
    site->stall_ms = limit_ms;
}

void rpc_site_always(struct rpc_site *site, struct str name, struct str value) {
    assert(site->always.count < STATUS_EXTRA_MAX);
    size_t at = site->always.count++;
    site->always_names[at] = text_copy(name);
    site->always_values[at] = text_copy(value);
    site->always.fields[at] =
        (struct field){text_str(site->always_names[at]), text_str(site->always_values[at])};
}

/* No call can reach the limit before this fires: it starts with the first call, and each time
 * waits for the call that has stalled longest. */
static void on_stall(void *ctx) {
    struct rpc_site *site = ctx;
    uint64_t next_ms = site->stall_ms;
    LIST_EACH(&site->calls, link) {
        uint64_t wait_ms = call_check_stall(CALL_OF(link), site->stall_ms);
        if (wait_ms < next_ms) next_ms = wait_ms;
    }
    if (!list_empty(&site->calls)) timer_start(&site->stall, next_ms);
}

void site_check_within(struct rpc_site *site, uint64_t in_ms) {
    bool sooner = loop_now_ms(site->loop) + in_ms < site->stall.due_ms;
    if (!timer_waits(&site->stall) || sooner) timer_start(&site->stall, in_ms);
}

/* --- the checks before a handler --------------------------------------------------------- */

/* The checks, in order: is it gRPC, which method, the deadline, the encoding, the caller. A
 * check that fails sends the answer itself. No message is read before the last check has
 * passed. */

static struct str value_of(const struct exchange *exchange, struct str name) {
    const struct field *field = exchange_field(exchange, name);
    return field ? str_trim(field->value) : STR_EMPTY;
}

bool rpc_wants(const struct exchange *exchange) {
    return grpc_content_type_ok(value_of(exchange, STR("content-type")));
}

/* HTTP/2 allows only one value of `te` (RFC 9113 8.2.2). */
static bool te_ok(struct rpc_call *call) {
    size_t count;
    const struct field *fields = exchange_fields(call->exchange, &count);
    for (size_t i = 0; i < count; i++) {
        if (str_equal(fields[i].name, STR("te")) &&
            !str_equal_nocase(str_trim(fields[i].value), STR("trailers")))
            return false;
    }
    return true;
}

/* A repeated token is left to the guard, which answers with a gRPC status. */
static bool singles_ok(const struct rpc_call *call) {
    static const struct str names[] = {STR_INIT("content-type"), STR_INIT("grpc-timeout"),
                                       STR_INIT("grpc-encoding")};
    size_t count;
    const struct field *fields = exchange_fields(call->exchange, &count);
    for (size_t n = 0; n < ARRAY_LEN(names); n++) {
        size_t found = 0;
        for (size_t i = 0; i < count; i++) found += str_equal(fields[i].name, names[n]);
        if (found > 1) return false;
    }
    return true;
}

static bool check_http(struct rpc_call *call) {
    if (!str_equal(exchange_method(call->exchange), STR("POST"))) {
        call_refuse_http(call, 405);
        return false;
    }
    if (!rpc_wants(call->exchange)) {
        call_refuse_http(call, 415);
        return false;
    }
    if (!singles_ok(call)) {
        call_refuse_http(call, 400);
        return false;
    }
    if (!te_ok(call)) {
        call_refuse_stream(call);
        return false;
    }
    return true;
}

static bool bin_ok(struct str value) {
    struct buf room;
    struct err e;
    bool ok = true;
    buf_init(&room, value.len + 1);
    do {
        struct str piece = str_trim(str_split(value, ',', &value));
        buf_clear(&room);
        ok = grpc_bin_decode(&room, piece, &e);
    } while (ok && value.at);
    buf_done(&room);
    return ok;
}

static bool rpc_refuse(struct rpc_call *call, const struct err *e) {
    call_refuse(call, e->code, err_text(e));
    return false;
}

/* Check keys that are never read too: invalid base64 is always a mistake of the sender. */
static bool check_bins(struct rpc_call *call) {
    size_t count;
    const struct field *fields = exchange_fields(call->exchange, &count);
    struct err e;
    for (size_t i = 0; i < count; i++) {
        if (!str_ends(fields[i].name, STR("-bin")) || bin_ok(fields[i].value)) continue;
        err_set(&e, ERR_INTERNAL, "the metadata " STR_FMT " is not base64",
                STR_ARG(fields[i].name));
        return rpc_refuse(call, &e);
    }
    return true;
}

/* Says which half of "/service/method" is unknown. */
static bool refuse_path(struct rpc_call *call, struct str path) {
    struct err e;
    struct str method, service = str_split(str_skip(path, 1), '/', &method);
    if (!str_starts(path, STR("/")) || !method.at) {
        err_set(&e, ERR_UNIMPLEMENTED, "malformed method name '" STR_FMT "'", STR_ARG(path));
    } else if (map_find(call->site->services, service)) {
        err_set(&e, ERR_UNIMPLEMENTED, "unknown method " STR_FMT " for service " STR_FMT,
                STR_ARG(method), STR_ARG(service));
    } else {
        err_set(&e, ERR_UNIMPLEMENTED, "unknown service " STR_FMT, STR_ARG(service));
    }
    return rpc_refuse(call, &e);
}

/* A method has no query. A '?' and what follows it make the name an unknown one. */
static const struct site_row *find_row(struct rpc_call *call) {
    struct str path = exchange_path(call->exchange);
    struct str query = exchange_query(call->exchange);
    if (query.at) {
        struct err e;
        err_set(&e, ERR_UNIMPLEMENTED, "malformed method name '" STR_FMT "?" STR_FMT "'",
                STR_ARG(path), STR_ARG(query));
        rpc_refuse(call, &e);
        return NULL;
    }
    const struct site_row *row = map_find(call->site->methods, path);
    if (!row) refuse_path(call, path);
    return row;
}

static bool check_timeout(struct rpc_call *call, uint64_t *ret_ms) {
    const struct field *field = exchange_field(call->exchange, STR("grpc-timeout"));
    struct err e;
    uint64_t timeout_ns;
    if (!field) return true;
    if (!grpc_timeout_parse(field->value, &timeout_ns, &e)) return rpc_refuse(call, &e);
    if (timeout_ns == 0) {
        err_set(&e, ERR_DEADLINE_EXCEEDED, "the deadline had passed before the call began");
        return rpc_refuse(call, &e);
    }
    *ret_ms = timeout_ns / NS_PER_MS + (timeout_ns % NS_PER_MS != 0);
    return true;
}

static bool check_encoding(struct rpc_call *call, enum grpc_encoding *ret) {
    struct str name = value_of(call->exchange, STR("grpc-encoding"));
    struct err e;
    *ret = grpc_encoding_named(name);
    if (*ret != GRPC_ENCODING_UNKNOWN) return true;
    err_set(&e, ERR_UNIMPLEMENTED, "messages encoded as '" STR_FMT "' are not understood",
            STR_ARG(name));
    return rpc_refuse(call, &e);
}

static bool takes_gzip(const struct rpc_call *call) {
    struct str list = value_of(call->exchange, STR("grpc-accept-encoding"));
    while (list.at) {
        if (str_equal(str_trim(str_split(list, ',', &list)), STR("gzip"))) return true;
    }
    return false;
}

static bool check_admitted(struct rpc_call *call) {
    if (call->method->effect >= call->site->admits) return true;
    call_refuse(call, ERR_UNAVAILABLE, call->site->why_refused);
    return false;
}

/* --- rates ------------------------------------------------------------------------------- */

struct str rpc_caller(const struct rpc_call *call, char room[static RPC_CALLER_BYTES]) {
    const struct rpc_identity *identity = &call->identity;
    struct buf text = {.at = room, .room = RPC_CALLER_BYTES, .max_bytes = RPC_CALLER_BYTES};
    if (!identity->known) return STR_EMPTY;
    buf_append(&text, str_head(identity->workspace, RPC_CALLER_BYTES / 2 - 1));
    buf_append_byte(&text, 0);
    buf_append(&text, str_head(identity->user, RPC_CALLER_BYTES / 2));
    return buf_str(&text);
}

static bool take_rate(struct rpc_call *call, enum rate_scope scope, struct str key,
                      struct err *e) {
    struct str name = rate_scope_name(scope);
    if (rate_limits_admit(call->site->rates, scope, key, loop_now_ms(call->site->loop), e))
        return true;
    metrics_report(METRIC_RATE_LIMITED, 1, &name);
    return false;
}

bool rpc_take_address_rate(struct rpc_call *call, struct err *e) {
    return take_rate(call, RATE_ADDRESS, exchange_peer_owner(call->exchange), e);
}

bool rpc_take_caller_rate(struct rpc_call *call, struct str caller, struct err *e) {
    return take_rate(call, RATE_TOKEN, caller, e);
}

static bool refuse_rate(struct rpc_call *call, const struct err *why) {
    retry_info_add(call, why);
    return rpc_refuse(call, why);
}

static bool check_address_rate(struct rpc_call *call) {
    struct err e;
    return rpc_take_address_rate(call, &e) || refuse_rate(call, &e);
}

static bool check_caller_rate(struct rpc_call *call) {
    struct err e;
    char room[RPC_CALLER_BYTES];
    return rpc_take_caller_rate(call, rpc_caller(call, room), &e) || refuse_rate(call, &e);
}

static bool check_caller(struct rpc_call *call, const struct rpc_service *service) {
    struct err e = {.code = ERR_NONE};
    bool rated = call->method->rated == RPC_RATED_CALL;
    if (call->method->auth == RPC_OPEN) return true;
    if (rated && !check_address_rate(call)) return false;
    if (!service->authenticate(call, service->ctx, &call->identity, &e)) {
        struct rpc_site *site = call->site;
        assert(e.code != ERR_NONE);
        if (site->refused) site->refused(call->method, &e, site->refused_ctx);
        return rpc_refuse(call, &e);
    }
    exchange_authenticated(call->exchange);
    return !rated || check_caller_rate(call);
}

void rpc_serve(struct rpc_site *site, struct exchange *exchange) {
    struct rpc_call *call = call_new(site, exchange);
    struct call_wishes wishes = {.timeout_ms = NEVER, .takes_gzip = takes_gzip(call)};
    if (!timer_waits(&site->stall)) timer_start(&site->stall, site->stall_ms);

    if (!check_http(call)) return;
    if (!check_bins(call)) return;
    const struct site_row *row = find_row(call);
    if (!row) return;
    call->method = row->method;
    if (!check_timeout(call, &wishes.timeout_ms)) return;
    if (!check_encoding(call, &wishes.encoding)) return;
    if (!check_admitted(call)) return;
    if (!check_caller(call, row->service)) return;
    call_open(call, &wishes, row->service);
}
