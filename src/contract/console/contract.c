#include "contract/console/contract.h"

#include "base/mem.h"
#include "contract/console/files.h"
#include "rpc/gzip.h"

#include <stdlib.h>

#define BODY_MAX_BYTES (1 * KIB) /* no route here takes a body */

struct console_instance {
    struct contract_callers callers;
};

/* --- who gets the files ------------------------------------------------------------------- */

static enum route_entry console_guard(struct route_call *call, const struct route *row,
                                      void *ctx, struct route_failure *ret) {
    const struct console_instance *instance = ctx;
    (void)row;
    if (instance->callers.secured(instance->callers.ctx)) return ENTRY_PROVED;
    if (exchange_peer_is_loopback(route_exchange(call))) return ENTRY_TRUSTED;
    *ret = (struct route_failure){
        403, STR("FORBIDDEN"),
        STR("without a token the console answers only peers on this machine; set "
            "AGENT_AUTH_TOKEN"),
        STR_EMPTY};
    return ENTRY_REFUSED;
}

/* --- what goes with a file ---------------------------------------------------------------- */

/* Scripts and styles come from these files alone; no page may frame this one; and the text sinks
 * that make markup of a string are closed (Trusted Types). */
#define POLICY                                                                                 \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "                \
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "        \
    "require-trusted-types-for 'script'; trusted-types 'none'"

static const struct field file_fields[] = {
    {STR_INIT("content-security-policy"), STR_INIT(POLICY)},
    {STR_INIT("x-content-type-options"), STR_INIT("nosniff")},
    {STR_INIT("x-frame-options"), STR_INIT("DENY")},
    {STR_INIT("referrer-policy"), STR_INIT("no-referrer")},
    {STR_INIT("cross-origin-opener-policy"), STR_INIT("same-origin")},
    {STR_INIT("cross-origin-resource-policy"), STR_INIT("same-origin")},
    {STR_INIT("cache-control"), STR_INIT("no-cache")},
    {STR_INIT("vary"), STR_INIT("accept-encoding")},
};

static void add_file_fields(struct route_call *call, const struct console_file *file) {
    for (size_t i = 0; i < ARRAY_LEN(file_fields); i++)
        route_field(call, file_fields[i].name, file_fields[i].value);
    route_field(call, STR("etag"), file->tag);
}

/* Whether the client has this content: its list names the tag, strong or weak, or a star. */
static bool has_already(struct route_call *call, const struct console_file *file) {
    struct str rest = lent_read(route_header(call, STR("if-none-match")));
    while (rest.len) {
        struct str tag = str_trim(str_split(rest, ',', &rest));
        if (str_equal(tag, STR("*"))) return true;
        if (str_starts(tag, STR("W/"))) tag = str_skip(tag, 2);
        if (str_equal(tag, file->tag)) return true;
    }
    return false;
}

/* "gzip", "gzip;q=0.5"; a quality of 0 is a refusal. */
static bool is_gzip(struct str coding) {
    struct str quality, name = str_trim(str_split(coding, ';', &quality));
    if (!str_equal_nocase(name, STR("gzip"))) return false;
    quality = str_trim(quality);
    if (!str_starts(quality, STR("q=0"))) return true;
    for (size_t i = 3; i < quality.len; i++) {
        if (quality.at[i] >= '1' && quality.at[i] <= '9') return true;
    }
    return false;
}

static bool takes_gzip(struct route_call *call) {
    struct str rest = lent_read(route_header(call, STR("accept-encoding")));
    while (rest.len) {
        if (is_gzip(str_split(rest, ',', &rest))) return true;
    }
    return false;
}

/* --- the routes --------------------------------------------------------------------------- */

static void send_plain(struct route_call *call, const struct console_file *file) {
    struct buf content;
    struct err e;
    buf_init(&content, file->len);
    if (gzip_inflate(file->gzip, &content, &e)) {
        route_reply(call, 200, file->type, buf_str(&content));
    } else {
        route_fail(call, &(struct route_failure){500, STR("INTERNAL_ERROR"), str_from(e.text),
                                                 STR_EMPTY});
    }
    buf_done(&content);
}

static void console_send(struct route_call *call, struct str name) {
    for (size_t i = 0; i < console_file_count; i++) {
        const struct console_file *file = &console_files[i];
        if (!str_equal(file->name, name)) continue;
        add_file_fields(call, file);
        if (has_already(call, file)) {
            route_reply(call, 304, STR_EMPTY, STR_EMPTY);
        } else if (takes_gzip(call)) {
            route_field(call, STR("content-encoding"), STR("gzip"));
            route_reply(call, 200, file->type, file->gzip);
        } else {
            send_plain(call, file);
        }
        return;
    }
    route_fail(call, &(struct route_failure){404, STR("NOT_FOUND"),
                                             STR("the console has no such file; it begins at "
                                                 "/weir/"),
                                             STR_EMPTY});
}

static void console_page(struct route_call *call, void *ctx) {
    (void)ctx;
    console_send(call, STR("index.html"));
}

static void console_file(struct route_call *call, void *ctx) {
    (void)ctx;
    console_send(call, lent_read(route_parameter(call, STR("file"))));
}

static void console_moved(struct route_call *call, void *ctx) {
    (void)ctx;
    route_field(call, STR("location"), STR("/weir/"));
    route_reply(call, 308, STR_EMPTY, STR_EMPTY);
}

static const struct route rows[] = {
    /* clang-format off */
    {STR_INIT("GET"), STR_INIT("/weir"),        console_moved, ROUTE_GUARDED, ROUTE_HEAD | ROUTE_VISIT},
    {STR_INIT("GET"), STR_INIT("/weir/"),       console_page,  ROUTE_GUARDED, ROUTE_HEAD | ROUTE_VISIT},
    {STR_INIT("GET"), STR_INIT("/weir/{file}"), console_file,  ROUTE_GUARDED, ROUTE_HEAD},
    /* clang-format on */
};

static void console_table(void *ctx, struct route_table *ret) {
    *ret = (struct route_table){.rows = rows,
                                .row_count = ARRAY_LEN(rows),
                                .body_max_bytes = BODY_MAX_BYTES,
                                .guard = console_guard,
                                .ctx = ctx};
}

/* --- the row ------------------------------------------------------------------------------ */

static void *console_init(const struct contract_loop *loop, const void *settings, void *state) {
    struct console_instance *instance = MEM_NEW(struct console_instance);
    (void)settings, (void)state;
    instance->callers = loop->callers;
    return instance;
}

static const struct contract_routes routes[] = {{"http", console_table}};

const struct contract console_contract = {
    .name = STR_INIT("console"),
    .routes = routes,
    .routes_count = ARRAY_LEN(routes),
    .instance = {.init = console_init, .done = free},
};
