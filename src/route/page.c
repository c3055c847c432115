#include "route/page.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

/* --- names and ports ---------------------------------------------------------------------- */

/* "host:port" or "[v6]:port"; an absent or empty port is 0. */
struct place {
    struct str host;
    uint64_t port;
};

static bool page_read_place(struct str authority, struct place *ret) {
    size_t bracket = str_find_byte(authority, ']');
    size_t from = str_starts(authority, STR("[")) && bracket < authority.len ? bracket : 0;
    size_t colon = from + str_find_byte(str_skip(authority, from), ':');
    struct str port = str_skip(authority, colon + 1);
    *ret = (struct place){str_head(authority, colon), 0};
    return ret->host.len > 0 && (port.len == 0 || (str_to_u64(port, &ret->port) &&
                                                   ret->port > 0 && ret->port <= UINT16_MAX));
}

static bool is_loopback_v4(const struct in_addr *address) {
    return ntohl(address->s_addr) >> 24 == 127;
}

/* Copy for inet_pton(), which needs a NUL at the end. A NUL inside is refused, because it would
 * cut the address short. */
static bool copy_address(struct str text, char ret[INET6_ADDRSTRLEN]) {
    if (text.len >= INET6_ADDRSTRLEN || str_find_byte(text, '\0') < text.len) return false;
    memcpy(ret, text.at, text.len);
    ret[text.len] = '\0';
    return true;
}

/* Addresses as browsers write them: four numbers, or a v6 address in brackets. Other spellings,
 * including zones, count as unknown names. */
static bool is_loopback_literal(struct str host) {
    char text[INET6_ADDRSTRLEN];
    struct in6_addr v6;
    struct in_addr v4;
    bool brackets = str_starts(host, STR("[")) && str_ends(host, STR("]"));
    struct str bare = brackets ? str_skip(str_head(host, host.len - 1), 1) : host;
    if (!copy_address(bare, text)) return false;
    if (!brackets) return inet_pton(AF_INET, text, &v4) == 1 && is_loopback_v4(&v4);
    if (inet_pton(AF_INET6, text, &v6) != 1) return false;
    if (!IN6_IS_ADDR_V4MAPPED(&v6)) return IN6_IS_ADDR_LOOPBACK(&v6);
    memcpy(&v4, &v6.s6_addr[12], sizeof(v4));
    return is_loopback_v4(&v4);
}

static struct str without_root(struct str name) {
    return str_ends(name, STR(".")) ? str_head(name, name.len - 1) : name;
}

static bool ends_nocase(struct str s, struct str tail) {
    return s.len > tail.len && str_equal_nocase(str_skip(s, s.len - tail.len), tail);
}

#define NAME_MAX_BYTES 253
#define LABEL_MAX_BYTES 63

/* RFC 1123 2.1, and the underscore that names inside a machine may have. */
static bool is_label(struct str label) {
    if (label.len == 0 || label.len > LABEL_MAX_BYTES) return false;
    for (size_t i = 0; i < label.len; i++) {
        bool inside = i > 0 && i + 1 < label.len;
        char c = label.at[i];
        if (!str_is_alnum(c) && c != '_' && !(inside && c == '-')) return false;
    }
    return true;
}

static bool is_below_localhost(struct str name) {
    if (name.len > NAME_MAX_BYTES || !ends_nocase(name, STR(".localhost"))) return false;
    struct str rest = name;
    while (rest.at) {
        if (!is_label(str_split(rest, '.', &rest))) return false;
    }
    return true;
}

static bool has_name(const struct page_list *list, struct str name) {
    for (size_t i = 0; i < list->count; i++) {
        if (str_equal_nocase(without_root(list->entries[i]), name)) return true;
    }
    return false;
}

static bool is_own(const struct page_rules *rules, struct str authority) {
    struct place place;
    if (!page_read_place(authority, &place)) return false;
    if (is_loopback_literal(place.host)) return true;
    struct str name = without_root(place.host);
    return str_equal_nocase(name, STR("localhost")) || is_below_localhost(name) ||
           has_name(&rules->hosts, name);
}

/* --- origins ------------------------------------------------------------------------------ */

static bool starts_nocase(struct str s, struct str head) {
    return s.len > head.len && str_equal_nocase(str_head(s, head.len), head);
}

/* "http://host:port"; a missing port is filled in from the scheme. */
static bool read_origin(struct str origin, struct place *ret, bool *ret_secure) {
    bool secure = starts_nocase(origin, STR("https://"));
    if (!secure && !starts_nocase(origin, STR("http://"))) return false;
    if (!page_read_place(str_skip(origin, secure ? 8 : 7), ret)) return false;
    if (ret->port == 0) ret->port = secure ? 443 : 80;
    *ret_secure = secure;
    return true;
}

static bool same_place(const struct place *a, const struct place *b) {
    return a->port == b->port && str_equal_nocase(a->host, b->host);
}

static bool same_origin(struct str a, struct str b) {
    struct place left, right;
    bool left_secure, right_secure;
    if (!read_origin(a, &left, &left_secure) || !read_origin(b, &right, &right_secure))
        return str_equal(a, b); /* "null" */
    return left_secure == right_secure && same_place(&left, &right);
}

bool page_is_listed(const struct page_rules *rules, struct str origin) {
    for (size_t i = 0; i < rules->origins.count; i++) {
        if (same_origin(rules->origins.entries[i], origin)) return true;
    }
    return false;
}

/* A proxy may have terminated TLS, so the scheme means nothing. A Host without a port means the
 * default port of the page's scheme. */
static bool came_from_here(struct str origin, struct str authority) {
    struct place page, here;
    bool secure;
    if (!read_origin(origin, &page, &secure) || !page_read_place(authority, &here))
        return false;
    if (here.port == 0) here.port = secure ? 443 : 80;
    return same_place(&page, &here);
}

/* --- the verdict -------------------------------------------------------------------------- */

static bool is_foreign_host(const struct page_rules *rules, const struct page_question *asked) {
    if (asked->reach != REACH_LOOPBACK || rules->any_host) return false;
    if (asked->authority.len > 0 && !is_own(rules, asked->authority)) return true;
    bool same = str_equal(asked->host, asked->authority); /* where the request line has none */
    return asked->host.len > 0 && !same && !is_own(rules, asked->host);
}

static bool is_foreign_page(const struct page_rules *rules, const struct page_question *asked) {
    if (asked->origin.at) {
        if (page_is_listed(rules, asked->origin)) return false;
        if (!came_from_here(asked->origin, asked->authority)) return true;
    }
    return asked->site.at && str_equal_nocase(asked->site, STR("cross-site"));
}

enum page_verdict page_judge(const struct page_rules *rules,
                             const struct page_question *asked) {
    if (asked->reach == REACH_LOCAL) return PAGE_FINE;
    if (is_foreign_host(rules, asked)) return PAGE_FOREIGN_HOST;
    return is_foreign_page(rules, asked) ? PAGE_FOREIGN_ORIGIN : PAGE_FINE;
}

/* --- settings ----------------------------------------------------------------------------- */

bool page_host_ok(struct str host) {
    char text[INET6_ADDRSTRLEN];
    struct in6_addr v6;
    if (!str_starts(host, STR("["))) return host.len > 0 && str_is_plain(host, ".-_");
    if (!str_ends(host, STR("]"))) return false;
    struct str bare = str_skip(str_head(host, host.len - 1), 1);
    return copy_address(bare, text) && inet_pton(AF_INET6, text, &v6) == 1;
}

bool page_origin_ok(struct str origin) {
    struct place place;
    bool secure;
    if (str_equal(origin, STR("null"))) return true;
    return read_origin(origin, &place, &secure) && page_host_ok(place.host);
}
