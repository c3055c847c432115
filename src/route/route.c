#include "route/route.h"

#include "base/mem.h"
#include "route/answer.h"
#include "route/pattern.h"

#include <assert.h>
#include <stdlib.h>

#define QUOTED_MAX_BYTES 200 /* of what a peer sent, in a message */

/* --- sites ------------------------------------------------------------------------------- */

struct route_site *route_site_new(struct loop *loop, const struct route_table *const *tables,
                                  size_t table_count) {
    assert(table_count > 0);
    struct route_site *site = MEM_NEW(struct route_site);
    site->loop = loop;
    site->tables = tables;
    site->table_count = table_count;
    list_init(&site->calls);
    return site;
}

void route_site_free(struct route_site *site) {
    if (!site) return;
    assert(list_empty(&site->calls));
    free(site);
}

#define CALL_OF(link_) CONTAINER_OF(link_, struct route_call, link)

void route_site_stop(struct route_site *site) {
    LIST_EACH(&site->calls, link) answer_say_stopping(CALL_OF(link));
}

void route_site_cut(struct route_site *site) {
    LIST_EACH(&site->calls, link) answer_cut(CALL_OF(link));
}

/* --- the checks before a handler --------------------------------------------------------- */

/* In this order, each of which answers by itself when it says no: path, method, the table's
 * guard, type of the body, its size. No byte of the body is read before the last one. */

static struct str quoted(struct str text) {
    return str_head(text, QUOTED_MAX_BYTES);
}

static bool has_path(const struct route_table *table, struct str path) {
    for (size_t i = 0; i < table->row_count; i++)
        if (pattern_matches(table->rows[i].path, path)) return true;
    return false;
}

static bool check_path(struct route_call *call, struct str path) {
    const struct route_site *site = call->site;
    for (size_t i = 0; i < site->table_count; i++) {
        if (!has_path(site->tables[i], path)) continue;
        call->table = site->tables[i];
        return true;
    }
    answer_refuse(call, 404, STR("NOT_FOUND"), "there is nothing at " STR_FMT,
                  STR_ARG(quoted(path)));
    return false;
}

static bool answers(const struct route *row, struct str method) {
    if (str_equal(row->method, method)) return true;
    return (row->needs & ROUTE_HEAD) && str_equal(method, STR("HEAD"));
}

static void allow(struct buf *list, struct str method) {
    if (list->len) buf_append(list, STR(", "));
    buf_append(list, method);
}

static void refuse_method(struct route_call *call, struct str path, struct str method) {
    char room[128];
    struct buf allowed = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    for (size_t i = 0; i < call->table->row_count; i++) {
        const struct route *row = &call->table->rows[i];
        if (!pattern_matches(row->path, path)) continue;
        allow(&allowed, row->method);
        if (row->needs & ROUTE_HEAD) allow(&allowed, STR("HEAD"));
    }
    route_field(call, STR("allow"), buf_str(&allowed));
    answer_refuse(call, 405, STR("METHOD_NOT_ALLOWED"),
                  STR_FMT " does not take " STR_FMT "; it takes " STR_FMT,
                  STR_ARG(quoted(path)), STR_ARG(quoted(method)), STR_ARG(buf_str(&allowed)));
}

static const struct route *find_row(struct route_call *call, struct str path,
                                    struct str method) {
    for (size_t i = 0; i < call->table->row_count; i++) {
        const struct route *row = &call->table->rows[i];
        if (pattern_matches(row->path, path) && answers(row, method)) return row;
    }
    refuse_method(call, path, method);
    return NULL;
}

static bool check_guard(struct route_call *call, const struct route *row) {
    const struct route_table *table = call->table;
    struct route_failure failure = {500, STR("INTERNAL_ERROR"), STR_EMPTY, STR_EMPTY};
    if (!(row->needs & ROUTE_AUTH) || !table->guard) return true;
    if (table->guard(call, row, table->ctx, &failure)) return true;
    route_fail(call, &failure);
    return false;
}

/* "application/json", "application/problem+json; charset=utf-8"; no type at all is taken for
 * JSON, too. */
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
    answer_refuse(call, 400, STR("INVALID_INPUT"),
                  "the content type is " STR_FMT "; send application/json",
                  STR_ARG(quoted(type)));
    return false;
}

static bool check_size(struct route_call *call) {
    int64_t len = exchange_content_length(call->exchange);
    size_t max_bytes = call->table->body_max_bytes;
    struct err e;
    if (len > 0 && (uint64_t)len > max_bytes) {
        answer_refuse(call, 413, STR("PAYLOAD_TOO_LARGE"), "the body is larger than %zu bytes",
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

bool route_query(const struct route_call *call, struct str name, struct buf *out) {
    return query_find(exchange_query(call->exchange), name, out);
}

void route_serve(struct route_site *site, struct exchange *exchange) {
    struct route_call *call = answer_new(site, exchange);
    struct str path = exchange_path(exchange);

    if (!check_path(call, path)) return;
    const struct route *row = find_row(call, path, exchange_method(exchange));
    if (!row) return;
    if (!check_guard(call, row)) return;
    if (!check_type(call, row)) return;
    if (!check_size(call)) return;
    answer_collect(call, row);
}
