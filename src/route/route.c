#include "route/route.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "metrics/metrics.h"
#include "route/answer.h"
#include "route/pattern.h"
#include "server/single.h"

#include <assert.h>
#include <stdlib.h>

#define QUOTED_MAX_BYTES 200 /* of a peer's input quoted in a message */

/* --- sites ------------------------------------------------------------------------------- */

/* A row must be marked open, or be guarded in a table that has a guard. */
bool route_table_ok(const struct route_table *table) {
    for (size_t i = 0; i < table->row_count; i++) {
        enum route_door door = table->rows[i].door;
        if (door != ROUTE_OPEN && (door != ROUTE_GUARDED || !table->guard)) return false;
    }
    return true;
}

static struct route_heads heads_of(const struct route_table *table) {
    struct route_heads heads = {.bits = {0}};
    for (size_t i = 0; i < table->row_count; i++) {
        struct str path = table->rows[i].path;
        if (path.len < 2) continue; /* "/" */
        uint8_t byte = (uint8_t)path.at[1];
        if (byte == '{') memset(&heads, 0xFF, sizeof(heads));
        heads.bits[byte / 64] |= UINT64_C(1) << byte % 64;
    }
    return heads;
}

static bool heads_have(const struct route_heads *heads, struct str path) {
    if (path.len < 2) return true;
    uint8_t byte = (uint8_t)path.at[1];
    return heads->bits[byte / 64] >> byte % 64 & 1;
}

struct route_site *route_site_new(struct loop *loop, const struct route_table *const *tables,
                                  size_t table_count) {
    assert(table_count > 0);
    for (size_t i = 0; i < table_count; i++) assert(route_table_ok(tables[i]));
    struct route_site *site = MEM_NEW(struct route_site);
    site->loop = loop;
    site->tables = tables;
    site->table_count = table_count;
    site->heads = mem_alloc(table_count * sizeof(struct route_heads));
    for (size_t i = 0; i < table_count; i++) site->heads[i] = heads_of(tables[i]);
    list_init(&site->calls);
    return site;
}

void route_site_free(struct route_site *site) {
    if (!site) return;
    assert(list_empty(&site->calls));
    free(site->heads);
    free(site);
}

void route_site_pages(struct route_site *site, const struct page_rules *rules) {
    site->pages = rules;
}

void route_site_refused(struct route_site *site, route_refused_fn *fn, void *ctx) {
    site->refused = fn;
    site->refused_ctx = ctx;
}

void route_site_rates(struct route_site *site, struct rate_limits *rates) {
    site->rates = rates;
}

#define CALL_OF(link_) CONTAINER_OF(link_, struct route_call, link)

void route_site_stop(struct route_site *site) {
    LIST_EACH(&site->calls, link) answer_say_stopping(CALL_OF(link));
}

void route_site_cut(struct route_site *site) {
    LIST_EACH(&site->calls, link) answer_cut(CALL_OF(link));
}

enum route_entry route_trust(struct route_call *call, const struct route *row, void *ctx,
                             struct route_failure *ret) {
    (void)call;
    (void)row;
    (void)ctx;
    (void)ret;
    return ENTRY_TRUSTED;
}

/* --- the checks before a handler --------------------------------------------------------- */

/* The checks, in order: path, method, duplicate fields, the address's rate, the table's guard, the
 * web page if no token was required, the token's rate, the type of the body, its size. A check that fails sends the answer
 * itself. No byte of the body is read before the last check. */

static struct str quoted(struct str text) {
    return str_head(text, QUOTED_MAX_BYTES);
}

/* The first row with the path, or NULL. */
static const struct route *row_with(const struct route_table *table, struct str path) {
    for (size_t i = 0; i < table->row_count; i++)
        if (pattern_matches(table->rows[i].path, path)) return &table->rows[i];
    return NULL;
}

/* The first row with the path; its table is the call's. NULL: there is none. */
static const struct route *find_table(struct route_call *call, struct str path) {
    const struct route_site *site = call->site;
    for (size_t i = 0; i < site->table_count; i++) {
        if (!heads_have(&site->heads[i], path)) continue;
        const struct route *row = row_with(site->tables[i], path);
        if (!row) continue;
        call->table = site->tables[i];
        return row;
    }
    return NULL;
}

static bool check_path(struct route_call *call, struct str path, const struct route *first) {
    if (first) return true;
    route_refuse(call, 404, STR("NOT_FOUND"), "there is nothing at " STR_FMT,
                 STR_ARG(quoted(path)));
    return false;
}

static const struct page_rules *rules_of(const struct route_call *call) {
    static const struct page_rules strictest = {.any_host = false};
    return call->site->pages ? call->site->pages : &strictest;
}

static bool refuse_host(struct route_call *call, const struct page_question *asked) {
    bool ours = asked->host.len == 0 || str_equal(asked->host, asked->authority);
    struct str host = quoted(ours ? asked->authority : asked->host);
    log_often(LOG_WARNING, "a request for the host '" STR_FMT "' is refused: http.hosts",
              STR_ARG(host));
    route_refuse(call, 403, STR("FORBIDDEN"),
                 "'" STR_FMT "' is not a name of this listener, and without a token it answers "
                 "only to its own; add the name to http.hosts, or set AGENT_AUTH_TOKEN",
                 STR_ARG(host));
    return false;
}

static bool refuse_page(struct route_call *call, const struct page_question *asked) {
    struct str origin = asked->origin.at ? quoted(asked->origin) : STR("another site");
    log_often(LOG_WARNING, "a request of a page of " STR_FMT " is refused: http.origins",
              STR_ARG(origin));
    route_refuse(call, 403, STR("FORBIDDEN"),
                 "a web page of " STR_FMT " may not use this listener; add its origin to "
                 "http.origins, or, if it is not a page, leave Origin and Sec-Fetch-Site out",
                 STR_ARG(origin));
    return false;
}

static bool table_lists(const struct route_call *call, struct str origin) {
    const struct route_table *table = call->table;
    return origin.at && table->lists_origin && table->lists_origin(origin, table->ctx);
}

/* A person follows a link or opens a bookmark: the browser shows the answer in a window of its own,
 * and the page with the link cannot read it. A frame is not a visit. */
static bool is_visit(const struct route_call *call, const struct route *row) {
    return (row->needs & ROUTE_VISIT) && !answer_header(call, STR("origin")).at &&
           str_equal(answer_header(call, STR("sec-fetch-mode")), STR("navigate")) &&
           str_equal(answer_header(call, STR("sec-fetch-dest")), STR("document"));
}

/* row  NULL: a preflight */
static bool check_page(struct route_call *call, const struct route *row) {
    const struct exchange *exchange = call->exchange;
    struct page_question asked = {
        .reach = exchange_reach(exchange),
        .authority = exchange_authority(exchange),
        .host = answer_header(call, STR("host")),
        .origin = answer_header(call, STR("origin")),
        .site = answer_header(call, STR("sec-fetch-site")),
    };
    if (table_lists(call, asked.origin)) asked.origin.at = asked.site.at = NULL;
    if (row && is_visit(call, row)) asked.site.at = NULL;
    switch (page_judge(rules_of(call), &asked)) {
    case PAGE_FINE: return true;
    case PAGE_FOREIGN_HOST: return refuse_host(call, &asked);
    case PAGE_FOREIGN_ORIGIN: return refuse_page(call, &asked);
    }
    return false;
}

static bool is_listed(const struct route_call *call) {
    struct str origin = answer_header(call, STR("origin"));
    return origin.at && (page_is_listed(rules_of(call), origin) || table_lists(call, origin));
}

/* The fields that let a browser show an answer to a page of another origin. */
static void add_cors(struct route_call *call) {
    if (!is_listed(call)) return;
    route_field(call, STR("access-control-allow-origin"), answer_header(call, STR("origin")));
    route_field(call, STR("access-control-expose-headers"), STR("*"));
    if (call->table->lists_origin)
        route_field(call, STR("access-control-allow-credentials"), STR("true"));
    route_field(call, STR("vary"), STR("origin"));
}

#define PREFLIGHT_KEPT_S STR("600")

/* A preflight: a browser asks, without a token, whether a page may send its request. */
static void answer_preflight(struct route_call *call, struct str methods) {
    struct str headers = answer_header(call, STR("access-control-request-headers"));
    route_field(call, STR("access-control-allow-methods"), methods);
    if (headers.len) route_field(call, STR("access-control-allow-headers"), headers);
    if (answer_header(call, STR("access-control-request-private-network")).at)
        route_field(call, STR("access-control-allow-private-network"), STR("true"));
    route_field(call, STR("access-control-max-age"), PREFLIGHT_KEPT_S);
    answer_empty(call, 204);
}

static bool is_preflight(const struct route_call *call) {
    return str_equal(exchange_method(call->exchange), STR("OPTIONS")) &&
           answer_header(call, STR("origin")).at &&
           answer_header(call, STR("access-control-request-method")).at;
}

static bool answers(const struct route *row, struct str method) {
    if (str_equal(row->method, method)) return true;
    return (row->needs & ROUTE_HEAD) && str_equal(method, STR("HEAD"));
}

static void allow(struct buf *list, struct str method) {
    if (list->len) buf_append(list, STR(", "));
    buf_append(list, method);
}

#define ALLOWED_BYTES 128

/* The methods that a path accepts, and whether any of them is guarded. */
static bool list_methods(const struct route_call *call, struct str path, struct buf *out) {
    bool guarded = false;
    for (size_t i = 0; i < call->table->row_count; i++) {
        const struct route *row = &call->table->rows[i];
        if (!pattern_matches(row->path, path)) continue;
        allow(out, row->method);
        if (row->needs & ROUTE_HEAD) allow(out, STR("HEAD"));
        guarded |= row->door != ROUTE_OPEN;
    }
    return guarded;
}

static void refuse_method(struct route_call *call, struct str path, struct str method) {
    char room[ALLOWED_BYTES];
    struct buf allowed = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    bool guarded = list_methods(call, path, &allowed);
    if (is_preflight(call) && is_listed(call)) {
        answer_preflight(call, buf_str(&allowed));
        return;
    }
    if (is_preflight(call) && guarded && !check_page(call, NULL)) return;
    route_field(call, STR("allow"), buf_str(&allowed));
    route_refuse(call, 405, STR("METHOD_NOT_ALLOWED"),
                 STR_FMT " does not take " STR_FMT "; it takes " STR_FMT, STR_ARG(quoted(path)),
                 STR_ARG(quoted(method)), STR_ARG(buf_str(&allowed)));
}

/* first  the first row with the path */
static const struct route *find_row(struct route_call *call, const struct route *first,
                                    struct str path, struct str method) {
    const struct route *end = call->table->rows + call->table->row_count;
    if (answers(first, method)) return first;
    for (const struct route *row = first + 1; row < end; row++) {
        if (pattern_matches(row->path, path) && answers(row, method)) return row;
    }
    refuse_method(call, path, method);
    return NULL;
}

static bool check_singles(struct route_call *call) {
    size_t count;
    const struct field *fields = exchange_fields(call->exchange, &count);
    struct str name = single_repeated(fields, count);
    if (name.len == 0) return true;
    route_refuse(call, 400, STR("INVALID_INPUT"),
                 "the header " STR_FMT " came more than once; send it once",
                 STR_ARG(quoted(name)));
    return false;
}

/* --- rates ------------------------------------------------------------------------------- */

static void rate_refuse_call(struct route_call *call, enum rate_scope scope,
                             const struct rate_room *room) {
    struct err why;
    struct str name = rate_scope_name(scope);
    rate_refuse(scope, room, &why);
    metrics_report(METRIC_RATE_LIMITED, 1, &name);
    struct route_failure failure = {429, STR("RATE_LIMITED"), err_text(&why), STR_EMPTY};
    if (call->table->rated) call->table->rated(call, room, &failure);
    route_retry_after(call, &why);
    route_fail(call, &failure);
}

static bool take_rate(struct route_call *call, enum rate_scope scope, struct str key,
                      struct rate_room *ret) {
    struct rate_room room;
    bool free_to_go =
        rate_limits_take(call->site->rates, scope, key, loop_now_ms(call->site->loop), &room);
    if (room.limit.count) *ret = room;
    if (!free_to_go) rate_refuse_call(call, scope, &room);
    return free_to_go;
}

void route_caller(struct route_call *call, struct str workspace, struct str user) {
    call->caller = map_hash(workspace) ^ (map_hash(user) << 1) ^ 1;
}

/* Whom the guard has recognised. What else a header says proves nothing, and would be another
 * bucket with each request. */
static struct str caller_key(const struct route_call *call) {
    return str_of((const char *)&call->caller, sizeof(call->caller));
}

static bool check_guard(struct route_call *call, const struct route *row) {
    const struct route_table *table = call->table;
    struct route_failure failure = {500, STR("INTERNAL_ERROR"), STR_EMPTY, STR_EMPTY};
    struct rate_room room = {.left = 0};
    if (row->door == ROUTE_OPEN) return true;
    if (!take_rate(call, RATE_ADDRESS, exchange_peer_owner(call->exchange), &room))
        return false;
    switch (table->guard(call, row, table->ctx, &failure)) {
    case ENTRY_PROVED:
        if (call->caller && !take_rate(call, RATE_TOKEN, caller_key(call), &room)) return false;
        if (room.limit.count && table->rated) table->rated(call, &room, NULL);
        return true;
    case ENTRY_TRUSTED:
        if (room.limit.count && table->rated) table->rated(call, &room, NULL);
        return check_page(call, row);
    case ENTRY_REFUSED: break;
    }
    if (call->site->refused) call->site->refused(row, &failure, call->site->refused_ctx);
    route_fail(call, &failure);
    return false;
}

/* "application/json", "application/problem+json; charset=utf-8". A missing type also counts as
 * JSON. */
static bool is_json(struct str content_type) {
    struct str parameters, type = str_trim(str_split(content_type, ';', &parameters));
    if (type.len == 0 && !parameters.at) return true;
    if (str_equal_nocase(type, STR("application/json"))) return true;
    return type.len > 5 && str_find_byte(type, '/') < type.len &&
           str_equal_nocase(str_skip(type, type.len - 5), STR("+json"));
}

static bool check_type(struct route_call *call, const struct route *row) {
    struct str type = lent_read(route_header(call, STR("content-type")));
    if (!(row->needs & ROUTE_JSON) || !type.at || is_json(type)) return true;
    route_refuse(call, 400, STR("INVALID_INPUT"),
                 "the content type is " STR_FMT "; send application/json",
                 STR_ARG(quoted(type)));
    return false;
}

static bool check_size(struct route_call *call) {
    int64_t len = exchange_content_length(call->exchange);
    size_t max_bytes = call->table->body_max_bytes;
    struct err e;
    if (len > 0 && (uint64_t)len > max_bytes) {
        call->cuts_short = true;
        route_refuse(call, 413, STR("PAYLOAD_TOO_LARGE"), "the body is larger than %zu bytes",
                     max_bytes);
        return false;
    }
    if (len <= 0 || mem_check((size_t)len, &e)) return true;
    answer_overloaded(call, &e);
    return false;
}

struct lent route_parameter(const struct route_call *call, struct str name) {
    return lent_of(pattern_parameter(call->row->path, exchange_path(call->exchange), name));
}

bool route_parameter_text(const struct route_call *call, struct str name, struct buf *out) {
    return segment_decode(lent_read(route_parameter(call, name)), out);
}

enum query_value route_query(const struct route_call *call, struct str name, struct buf *out) {
    return query_find(exchange_query(call->exchange), name, out);
}

void route_serve(struct route_site *site, struct exchange *exchange) {
    struct route_call *call = answer_new(site, exchange);
    struct str path = exchange_path(exchange);

    const struct route *first = find_table(call, path);
    add_cors(call);
    if (!check_path(call, path, first)) return;
    const struct route *row = find_row(call, first, path, exchange_method(exchange));
    if (!row) return;
    if (!check_singles(call)) return;
    if (!check_guard(call, row)) return;
    if (!check_type(call, row)) return;
    if (!check_size(call)) return;
    answer_collect(call, row);
}
