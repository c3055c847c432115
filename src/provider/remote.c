#include "provider/remote.h"

#include "base/mem.h"
#include "provider/remote_inner.h"

#include <assert.h>
#include <stdlib.h>

/* The version is that of daemon.h; a test compares them. */
#define USER_AGENT "weir/0.1.0"

/* For the copied settings, with a wide margin. */
#define OPTIONS_MAX_BYTES MIB

const struct remote_options remote_defaults = {
    .connect_ms = 10000,
    .first_byte_ms = 60000,
    .stall_ms = 60000,
    .total_ms = 600000,
    .retries_max = 2,
    .pause_ms = 500,
    .pause_max_ms = 30000,
    .reply_max_bytes = 16 * MIB,
};

static void remote_free(struct provider *provider) {
    struct remote *remote = CONTAINER_OF(provider, struct remote, base);
    arena_free(remote->arena);
    free(remote);
}

/* --- a copy of the settings --------------------------------------------------------------- */

static struct str remote_keep(struct remote *remote, struct str text) {
    struct str kept = STR_EMPTY;
    bool fits = arena_str(remote->arena, text, &kept);
    assert(fits);
    return kept;
}

static void keep_settings(struct remote *remote, const struct remote_options *options) {
    remote->arena = arena_new(OPTIONS_MAX_BYTES);
    remote->options = *options;
    remote->options.name = remote->base.name = remote_keep(remote, options->name);
    remote->options.settings = (struct dialect_settings){
        .base_url = remote_keep(remote, options->settings.base_url),
        .model = remote_keep(remote, options->settings.model),
        .query = remote_keep(remote, options->settings.query),
        .key = remote_keep(remote,
                           str_trim(options->settings.key)), /* files end with a line break */
        .key_header = remote_keep(remote, options->settings.key_header),
        .joins_users = options->settings.joins_users,
        .own = remote_keep(remote, options->settings.own),
    };
    atomic_init(&remote->whole, options->settings.whole);
    remote->options.headers = NULL; /* they are in remote->headers */
    remote->options.header_count = 0;
}

/* --- headers ------------------------------------------------------------------------------ */

enum shown { SHOWN, SECRET };

/* A later header replaces an earlier one with its name, so configured headers win. */
static void set_header(struct remote *remote, struct str name, struct str value,
                       enum shown shown) {
    size_t at = 0;
    while (at < remote->header_count && !str_equal_nocase(remote->headers[at].name, name)) at++;
    if (at == remote->header_count) remote->header_count++;
    remote->headers[at] =
        (struct http_header){remote_keep(remote, name), remote_keep(remote, value)};
    remote->secret[at] = shown == SECRET;
}

static void set_key(struct remote *remote, const struct dialect *dialect) {
    struct str own = remote->options.settings.key_header; /* Azure's "api-key" */
    struct buf value;
    buf_init(&value, OPTIONS_MAX_BYTES);
    if (own.len == 0) buf_append(&value, str_from(dialect->key_prefix));
    buf_append(&value, remote->options.settings.key);
    set_header(remote, own.len ? own : str_from(dialect->key_header), buf_str(&value), SECRET);
    buf_done(&value);
}

/* Some servers decide by this header alone. A configured one is kept. */
static void set_whole_headers(struct remote *remote) {
    size_t bytes = remote->header_count * sizeof(*remote->headers);
    remote->whole_headers = arena_alloc(remote->arena, bytes);
    assert(remote->whole_headers);
    memcpy(remote->whole_headers, remote->headers, bytes);
    for (size_t i = 0; i < remote->header_count; i++) {
        struct http_header *header = &remote->whole_headers[i];
        bool accept = str_equal_nocase(header->name, STR("accept"));
        if (accept && !remote->secret[i]) header->value = STR("application/json");
    }
}

static void remote_set_headers(struct remote *remote, const struct remote_options *options) {
    const struct dialect *dialect = options->dialect;
    size_t max = 4 + dialect->header_count + options->header_count;
    remote->headers = arena_alloc(remote->arena, max * sizeof(*remote->headers));
    remote->secret = arena_alloc(remote->arena, max * sizeof(*remote->secret));
    assert(remote->headers && remote->secret);

    set_header(remote, STR("content-type"), STR("application/json"), SHOWN);
    set_header(remote, STR("accept"), STR("text/event-stream"), SHOWN);
    set_header(remote, STR("user-agent"), STR(USER_AGENT), SHOWN);
    for (size_t i = 0; i < dialect->header_count; i++)
        set_header(remote, dialect->headers[i].name, dialect->headers[i].value, SHOWN);
    if (remote->options.settings.key.len) set_key(remote, dialect);
    /* Headers may hold the keys of gateways, so their values are never shown. */
    for (size_t i = 0; i < options->header_count; i++)
        set_header(remote, options->headers[i].name, options->headers[i].value, SECRET);
    set_whole_headers(remote);
}

#define TRACE_HEADERS 2

struct http_header *remote_headers(const struct remote *remote, bool whole,
                                   const struct trace_context *trace,
                                   char parent[static TRACE_PARENT_BYTES + 1],
                                   size_t *ret_count) {
    size_t count = remote->header_count;
    struct http_header *headers = mem_zero(count + TRACE_HEADERS, sizeof(*headers));
    memcpy(headers, whole ? remote->whole_headers : remote->headers, count * sizeof(*headers));
    if (trace) {
        trace_context_write(trace, parent);
        headers[count++] = (struct http_header){STR("traceparent"), str_from(parent)};
    }
    if (trace && trace->state.len)
        headers[count++] = (struct http_header){STR("tracestate"), trace->state};
    *ret_count = count;
    return headers;
}

/* --- the provider ------------------------------------------------------------------------- */

static const struct provider_kind remote_kind = {
    .name = "remote",
    .start = remote_call_start,
    .pause = remote_call_pause,
    .resume = remote_call_resume,
    .cancel = remote_call_cancel,
    .free = remote_free,
};

struct provider *remote_provider_new(const struct remote_options *options) {
    assert(options->dialect && options->pool);
    struct remote *remote = MEM_NEW(struct remote);
    remote->base.kind = &remote_kind;
    keep_settings(remote, options);
    remote_set_headers(remote, options);
    return &remote->base;
}
