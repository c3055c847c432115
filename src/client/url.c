#include "client/url.h"

static bool is_alpha(char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

static bool url_is_digit(char byte) {
    return byte >= '0' && byte <= '9';
}

/* Length of "scheme:" at the start, or 0. */
static size_t scheme_len(struct str text) {
    if (text.len == 0 || !is_alpha(text.at[0])) return 0;
    for (size_t i = 1; i < text.len; i++) {
        char byte = text.at[i];
        if (byte == ':') return i + 1;
        if (!is_alpha(byte) && !url_is_digit(byte) && byte != '+' && byte != '-' && byte != '.')
            return 0;
    }
    return 0;
}

static size_t find_any(struct str text, const char *bytes) {
    size_t at = 0;
    while (at < text.len && (!text.at[at] || !strchr(bytes, text.at[at]))) at++;
    return at;
}

static bool has_no_gap(struct str text) {
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.at[i] <= ' ' || text.at[i] == 127) return false;
    }
    return true;
}

static enum url_kind judge_host(struct str host, bool bracketed) {
    if (host.len == 0 || host.len > 253) return URL_BROKEN;
    for (size_t i = 0; i < host.len; i++) {
        unsigned char byte = (unsigned char)host.at[i];
        if (byte >= 128 || byte == '%') return URL_RARE;
        bool fine = is_alpha((char)byte) || url_is_digit((char)byte) || byte == '.' ||
                    (bracketed ? byte == ':' : byte == '-' || byte == '_');
        if (!fine) return URL_BROKEN;
    }
    return URL_FINE;
}

static bool read_port(struct str text, struct url *url) {
    uint64_t port = url->secure ? 443 : 80;
    if (text.len && (!str_to_u64(text, &port) || port == 0 || port > UINT16_MAX)) return false;
    url->port = (uint16_t)port;
    return true;
}

static enum url_kind read_authority(struct str text, struct url *url) {
    size_t at = text.len;
    while (at > 0 && text.at[at - 1] != '@') at--;
    url->user = at ? str_head(text, at - 1) : (struct str){NULL, 0};
    text = url->authority = str_skip(text, at);

    bool bracketed = text.len && text.at[0] == '[';
    size_t end = bracketed ? str_find_byte(text, ']') : str_find_byte(text, ':');
    if (bracketed && end == text.len) return URL_BROKEN;
    url->host = bracketed ? str_of(text.at + 1, end - 1) : str_head(text, end);
    struct str rest = str_skip(text, bracketed ? end + 1 : end);
    if (rest.len && rest.at[0] != ':') return URL_BROKEN;
    if (!read_port(str_skip(rest, 1), url)) return URL_BROKEN;
    if (rest.len == 1) url->authority.len--; /* a colon without a port */
    return judge_host(url->host, bracketed);
}

enum url_kind url_read(struct str text, struct url *ret) {
    size_t scheme = scheme_len(text);
    struct url url = {0};
    if (scheme == 0) return URL_RARE; /* libcurl would guess a scheme */
    url.secure = str_equal_nocase(str_head(text, scheme), STR("https:"));
    if (!url.secure && !str_equal_nocase(str_head(text, scheme), STR("http:")))
        return URL_OTHER_SCHEME;
    struct str rest = str_skip(text, scheme);
    if (!str_starts(rest, STR("//"))) return URL_RARE;
    rest = str_skip(rest, 2);
    size_t end = find_any(rest, "/?#");
    enum url_kind kind = read_authority(str_head(rest, end), &url);
    rest = str_skip(rest, end);
    rest = str_head(rest, str_find_byte(rest, '#'));
    url.path = str_head(rest, str_find_byte(rest, '?'));
    url.query = str_skip(rest, url.path.len);
    if (kind == URL_FINE && !has_no_gap(rest)) kind = URL_RARE;
    if (kind == URL_FINE) *ret = url;
    return kind;
}

/* --- dot segments ------------------------------------------------------------------------- */

/* Remove the last segment, with its slash. */
static void drop_segment(struct buf *buf, size_t from) {
    while (buf->len > from && buf->at[--buf->len] != '/') {
    }
}

/* RFC 3986 5.2.4, for a path that begins with '/'. */
static void append_path(struct buf *buf, struct str path) {
    size_t from = buf->len;
    while (path.len) {
        size_t end = 1 + str_find_byte(str_skip(path, 1), '/');
        struct str segment = str_head(path, end), rest = str_skip(path, end);
        bool up = str_equal(segment, STR("/.."));
        if (up) drop_segment(buf, from);
        if (up || str_equal(segment, STR("/."))) {
            if (rest.len == 0) buf_append_byte(buf, '/');
        } else {
            buf_append(buf, segment);
        }
        path = rest;
    }
    if (buf->len == from) buf_append_byte(buf, '/');
}

void url_append_target(const struct url *url, struct buf *ret) {
    append_path(ret, url->path);
    buf_append(ret, url->query);
}

/* --- redirects ---------------------------------------------------------------------------- */

static void append_origin(struct buf *buf, const struct url *url) {
    buf_append(buf, url->secure ? STR("https://") : STR("http://"));
    buf_append(buf, url->authority);
}

/* Resolve a relative path: it replaces everything after the base's last slash. */
static void append_merged(struct buf *buf, const struct url *base, struct str path) {
    struct buf merged;
    size_t keep = base->path.len;
    while (keep > 0 && base->path.at[keep - 1] != '/') keep--;
    buf_init(&merged, buf->max_bytes);
    buf_append(&merged, keep ? str_head(base->path, keep) : STR("/"));
    buf_append(&merged, path);
    append_path(buf, buf_str(&merged));
    buf_done(&merged);
}

/* Escape spaces and other bytes that servers send but URLs do not allow. */
static void url_append_escaped(struct buf *buf, struct str text) {
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.at[i];
        if (byte <= ' ' || byte >= 127)
            buf_printf(buf, "%%%02X", byte);
        else
            buf_append_byte(buf, (char)byte);
    }
}

static void append_reference(struct buf *buf, const struct url *base, struct str location) {
    struct str path = str_head(location, str_find_byte(location, '?'));
    struct str query = str_skip(location, path.len);
    append_origin(buf, base);
    if (path.len == 0) {
        append_path(buf, base->path);
        if (query.len == 0) query = base->query;
    } else if (path.at[0] == '/') {
        append_path(buf, path);
    } else {
        append_merged(buf, base, path);
    }
    buf_append(buf, query);
}

bool url_follow(const struct url *base, struct str location, struct buf *ret) {
    struct buf text;
    buf_init(&text, ret->max_bytes);
    url_append_escaped(&text, str_head(location, str_find_byte(location, '#')));
    struct str reference = buf_str(&text);
    buf_clear(ret);
    if (scheme_len(reference)) {
        buf_append(ret, reference);
    } else if (str_starts(reference, STR("//"))) {
        buf_append(ret, base->secure ? STR("https:") : STR("http:"));
        buf_append(ret, reference);
    } else {
        append_reference(ret, base, reference);
    }
    bool fits = buf_ok(&text) && buf_ok(ret);
    buf_done(&text);
    return fits;
}
