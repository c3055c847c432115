#include "contract/nimi/fetch.h"

#include "base/mem.h"
#include "session/session.h"
#include "wire/hex.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#define PIECE_BYTES (256 * KIB)
#define LOW_BYTES (64 * KIB) /* when this much is left to send, read the next piece */
#define TYPE_MAX_BYTES 256

/* --- addresses ---------------------------------------------------------------------------- */

void fetch_token(char ret[static ARTIFACT_TOKEN_BYTES]) {
    ssize_t got = getrandom(ret, ARTIFACT_TOKEN_BYTES, 0);
    if (got != ARTIFACT_TOKEN_BYTES) abort(); /* cannot happen after startup */
}

struct str fetch_host(struct str authority) {
    bool literal = authority.len && authority.at[0] == '[';
    size_t len = literal ? str_find(authority, STR("]")) + 1 : str_find(authority, STR(":"));
    struct str host = str_head(authority, len);
    if (literal && (host.len < 3 || host.at[host.len - 1] != ']')) return STR_EMPTY;
    struct str bare = literal ? str_head(str_skip(host, 1), host.len - 2) : host;
    return str_is_plain(bare, literal ? ".:" : ".-") ? host : STR_EMPTY;
}

bool fetch_uri(const struct nimi_call *call, struct str token, struct buf *out) {
    const struct nimi_files *files = &call->instance->runtime->files;
    struct str host = files->host[0] ? str_from(files->host) : call->host;
    if (!files->port || !token.len || !host.len) return false;
    buf_printf(out, "%s://" STR_FMT ":%d" FETCH_PATH, files->tls ? "https" : "http",
               STR_ARG(host), files->port);
    return hex_append(out, token) && buf_ok(out);
}

/* --- ranges ------------------------------------------------------------------------------- */

/* The range of the last `count` bytes. */
static enum fetch_range suffix(uint64_t count, uint64_t size, uint64_t *ret_first,
                               uint64_t *ret_last) {
    if (count == 0 || size == 0) return FETCH_OUTSIDE;
    *ret_first = count < size ? size - count : 0;
    *ret_last = size - 1;
    return FETCH_PART;
}

enum fetch_range fetch_range(struct str header, uint64_t size, uint64_t *ret_first,
                             uint64_t *ret_last) {
    struct str unit = STR("bytes="), rest;
    if (!header.at || !str_equal_nocase(str_head(header, unit.len), unit)) return FETCH_WHOLE;
    struct str spec = str_skip(header, unit.len);
    if (str_find(spec, STR("-")) == spec.len) return FETCH_WHOLE;
    struct str from = str_trim(str_split(spec, '-', &rest)), to = str_trim(rest);
    uint64_t first, last;
    bool has_first = str_to_u64(from, &first), has_last = str_to_u64(to, &last);
    if (!from.len && has_last) return suffix(last, size, ret_first, ret_last);
    if (!has_first || (to.len && !has_last)) return FETCH_WHOLE; /* also for several ranges */
    if (has_last && last < first) return FETCH_WHOLE;
    if (first >= size) return FETCH_OUTSIDE;
    *ret_first = first;
    *ret_last = has_last && last < size ? last : size - 1;
    return FETCH_PART;
}

/* --- a reader ----------------------------------------------------------------------------- */

struct reader {
    struct route_call *call; /* NULL: the call is over */
    struct store *store;
    struct artifact_ask *ask;
    uint64_t next, end; /* the bytes still to be sent */
    char token[ARTIFACT_TOKEN_BYTES];
    struct str range, if_range; /* headers of the request; at == NULL: absent */
};

static void reader_free(void *ctx) {
    struct reader *reader = ctx;
    artifact_forget(reader->ask);
    free(reader);
}

static void fetch_on_piece(const struct artifact *artifact, const struct err *failed,
                           void *ctx);

static void fetch_read_next(struct reader *reader) {
    uint64_t left = reader->end - reader->next;
    reader->ask = artifact_find_start(
        reader->store, route_loop(reader->call), str_of(reader->token, ARTIFACT_TOKEN_BYTES),
        (size_t)reader->next, left < PIECE_BYTES ? (size_t)left : PIECE_BYTES, fetch_on_piece,
        reader);
}

static void fetch_on_drained(void *ctx) {
    struct reader *reader = ctx;
    if (!reader->ask && reader->next < reader->end) fetch_read_next(reader);
}

/* If the rest of a promised body cannot be read, the stream is cut, so that the body does not
 * look whole. */
static void fetch_on_piece(const struct artifact *artifact, const struct err *failed,
                           void *ctx) {
    struct reader *reader = ctx;
    reader->ask = NULL;
    if (failed || artifact->bytes.len == 0) {
        route_break(reader->call);
        return;
    }
    reader->next += artifact->bytes.len;
    route_piece(reader->call, artifact->bytes);
    if (reader->next == reader->end) {
        route_sse_end(reader->call);
    } else if (route_pressure(reader->call) <= LOW_BYTES) {
        fetch_read_next(reader);
    } else {
        route_wake_at(reader->call, LOW_BYTES);
    }
}

static void fetch_fail(struct route_call *call, int status, struct str code,
                       struct str message) {
    route_fail(call, &(struct route_failure){status, code, message, STR_EMPTY});
}

static void refuse_absent(struct route_call *call) {
    fetch_fail(call, 404, STR("NOT_FOUND"), STR("there is no such artifact, or it is gone"));
}

/* Browsers must not render the artifact as a page of ours, and must not leak its URL as a
 * referrer. */
static void add_fields(struct route_call *call) {
    route_field(call, STR("accept-ranges"), STR("bytes"));
    route_field(call, STR("content-disposition"), STR("attachment"));
    route_field(call, STR("content-security-policy"), STR("default-src 'none'; sandbox"));
    route_field(call, STR("referrer-policy"), STR("no-referrer"));
}

/* The provider's content type, if it is valid in a header. Our own text is UTF-8. */
static struct str fetch_type_of(struct route_call *call, struct str type) {
    bool plain = type.len && type.len <= TYPE_MAX_BYTES;
    for (size_t i = 0; plain && i < type.len; i++)
        plain = type.at[i] > ' ' || type.at[i] == ' ';
    if (!plain) return STR("application/octet-stream");
    if (str_equal(type, STR("text/plain"))) return STR("text/plain; charset=utf-8");
    return route_keep(call, type);
}

/* An artifact never changes, so its number serves as the validator. */
static enum fetch_range range_of(struct reader *reader, const struct artifact *artifact,
                                 uint64_t *ret_first, uint64_t *ret_last) {
    struct str same = reader->if_range;
    char tag[32];
    snprintf(tag, sizeof(tag), "\"%" PRId64 "\"", artifact->id);
    route_field(reader->call, STR("etag"), str_from(tag));
    if (same.at && !str_equal(same, str_from(tag))) return FETCH_WHOLE;
    return fetch_range(reader->range, artifact->size, ret_first, ret_last);
}

static void refuse_range(struct route_call *call, size_t size) {
    char text[48];
    snprintf(text, sizeof(text), "bytes */%zu", size);
    route_field(call, STR("content-range"), str_from(text));
    fetch_fail(call, 416, STR("RANGE_NOT_SATISFIABLE"),
               STR("the artifact has fewer bytes; its size stands in Content-Range"));
}

/* Send the head, then the first piece. */
static void fetch_begin(struct reader *reader, const struct artifact *artifact) {
    struct route_call *call = reader->call;
    uint64_t first = 0, last = artifact->size - 1;
    char text[96];
    add_fields(call);
    enum fetch_range range = range_of(reader, artifact, &first, &last);
    if (range == FETCH_OUTSIDE) {
        refuse_range(call, artifact->size);
        return;
    }
    if (range == FETCH_PART) {
        snprintf(text, sizeof(text), "bytes %" PRIu64 "-%" PRIu64 "/%zu", first, last,
                 artifact->size);
        route_field(call, STR("content-range"), str_from(text));
    }
    reader->next = first;
    reader->end = last + 1;
    int status = range == FETCH_PART ? 206 : 200;
    if (route_sized_begin(call, status, fetch_type_of(call, artifact->content_type),
                          reader->end - first))
        fetch_read_next(reader);
}

static void fetch_on_found(const struct artifact *artifact, const struct err *failed,
                           void *ctx) {
    struct reader *reader = ctx;
    reader->ask = NULL;
    if (!failed && artifact->size) {
        fetch_begin(reader, artifact);
    } else if (!failed || failed->code == ERR_NOT_FOUND) {
        refuse_absent(reader->call);
    } else {
        fetch_fail(reader->call, 503, STR("UNAVAILABLE"),
                   STR("artifacts cannot be read now; ask again later"));
    }
}

static const struct route_watch watch = {
    .left = reader_free, .drained = fetch_on_drained, .closed = reader_free};

/* Copy a header, because the store is asked first; at == NULL when it is absent. */
static struct str keep_header(struct route_call *call, struct str name) {
    struct str value = lent_read(route_header(call, name));
    return value.at ? route_keep(call, value) : value;
}

void fetch_artifact(struct route_call *call, void *ctx) {
    struct nimi_instance *instance = ctx;
    char token[ARTIFACT_TOKEN_BYTES];
    struct store *store = session_table_store(instance->host->engine->sessions);
    if (nimi_runtime_state(instance->runtime) == LIFE_STARTING) {
        fetch_fail(call, 503, STR("UNAVAILABLE"),
                   STR("the runtime is starting; ask again later"));
        return;
    }
    if (!store ||
        !hex_read(lent_read(route_parameter(call, STR("token"))), token, sizeof(token))) {
        refuse_absent(call);
        return;
    }
    struct reader *reader = MEM_NEW(struct reader);
    reader->call = call;
    reader->store = store;
    memcpy(reader->token, token, sizeof(token));
    reader->range = keep_header(call, STR("range"));
    reader->if_range = keep_header(call, STR("if-range"));
    route_watch(call, &watch, reader);
    reader->ask = artifact_find_start(store, route_loop(call),
                                      str_of(reader->token, ARTIFACT_TOKEN_BYTES), 0, 0,
                                      fetch_on_found, reader);
}
