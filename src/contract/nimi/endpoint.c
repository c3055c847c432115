#include "contract/nimi/endpoint.h"

#include "client/http.h"

#include <arpa/inet.h>

/* The host of "scheme://user@host:port/path?query", without the brackets of an IPv6 address.
 * `rest` is what follows "://". */
static struct str endpoint_host_of(struct str rest) {
    size_t end = 0;
    while (end < rest.len && rest.at[end] != '/' && rest.at[end] != '?' &&
           rest.at[end] != '#' && rest.at[end] != '\\')
        end++;
    struct str authority = str_head(rest, end);
    for (size_t at; (at = str_find_byte(authority, '@')) < authority.len;)
        authority = str_skip(authority, at + 1);
    if (str_starts(authority, STR("["))) {
        authority = str_skip(authority, 1);
        return str_head(authority, str_find_byte(authority, ']'));
    }
    return str_head(authority, str_find_byte(authority, ':'));
}

enum place { PLACE_PUBLIC, PLACE_LOOPBACK, PLACE_FORBIDDEN };

static bool is_loopback(const unsigned char *address, size_t len) {
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff},
                               loopback[16] = {[15] = 1};
    if (len == 4) return address[0] == 127;
    return memcmp(address, loopback, sizeof(loopback)) == 0 ||
           (memcmp(address, mapped, sizeof(mapped)) == 0 && address[12] == 127);
}

static enum place place_of_address(const void *address, size_t len) {
    if (!http_address_is_in_reach(HTTP_NOT_LINK_LOCAL, address, len)) return PLACE_FORBIDDEN;
    return is_loopback(address, len) ? PLACE_LOOPBACK : PLACE_PUBLIC;
}

/* An address may be spelled in every way that the client dials: "169.254.169.254",
 * "2852039166", "0xa9fe.43518". */
static enum place endpoint_place_of(struct str host) {
    char text[64];
    struct in_addr four;
    struct in6_addr six;
    struct str name = str_head(host, str_find_byte(host, '%')); /* without a zone */
    if (str_equal_nocase(host, STR("localhost"))) return PLACE_LOOPBACK;
    if (name.len >= sizeof(text)) return PLACE_PUBLIC;
    memcpy(text, name.at, name.len);
    text[name.len] = '\0';
    if (inet_pton(AF_INET6, text, &six) == 1) return place_of_address(&six, sizeof(six));
    if (inet_aton(text, &four)) return place_of_address(&four, sizeof(four));
    return PLACE_PUBLIC;
}

bool endpoint_is_safe(struct str url, enum endpoint_near near) {
    size_t scheme_len = str_find(url, STR("://"));
    struct str scheme = str_head(url, scheme_len);
    struct str host = endpoint_host_of(str_skip(url, scheme_len + 3));
    bool https = str_equal_nocase(scheme, STR("https"));
    if (host.len == 0 || (!https && !str_equal_nocase(scheme, STR("http")))) return false;
    switch (endpoint_place_of(host)) {
    case PLACE_FORBIDDEN: return false;
    case PLACE_LOOPBACK: return https || near == ENDPOINT_LOOPBACK_TOO;
    default: return https;
    }
}

struct str endpoint_shown(struct str url) {
    struct str rest;
    url = str_split(url, '?', &rest);
    url = str_split(url, '#', &rest);
    return str_find_byte(url, '@') < url.len ? STR_EMPTY : url;
}
