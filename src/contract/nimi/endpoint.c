#include "contract/nimi/endpoint.h"

#include <arpa/inet.h>

/* The host of "scheme://user@host:port/path?query", without the brackets of an IPv6 address.
 * `rest` is what follows "://". */
static struct str host_of(struct str rest) {
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

static enum place place_of_four(const unsigned char *address) {
    if (address[0] == 127) return PLACE_LOOPBACK;
    return address[0] == 169 && address[1] == 254 ? PLACE_FORBIDDEN : PLACE_PUBLIC;
}

static enum place place_of_six(const unsigned char *address) {
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff},
                               loopback[16] = {[15] = 1};
    bool link_local = address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
    bool unique_local = (address[0] & 0xfe) == 0xfc;
    if (memcmp(address, mapped, sizeof(mapped)) == 0) return place_of_four(address + 12);
    if (memcmp(address, loopback, sizeof(loopback)) == 0) return PLACE_LOOPBACK;
    return link_local || unique_local ? PLACE_FORBIDDEN : PLACE_PUBLIC;
}

static enum place place_of(struct str host) {
    char text[INET6_ADDRSTRLEN + 1];
    unsigned char address[16];
    struct str name = str_head(host, str_find_byte(host, '%')); /* without a zone */
    if (str_equal_nocase(host, STR("localhost"))) return PLACE_LOOPBACK;
    if (name.len >= sizeof(text)) return PLACE_PUBLIC;
    memcpy(text, name.at, name.len);
    text[name.len] = '\0';
    if (inet_pton(AF_INET, text, address) == 1) return place_of_four(address);
    if (inet_pton(AF_INET6, text, address) == 1) return place_of_six(address);
    return PLACE_PUBLIC;
}

bool endpoint_is_safe(struct str url, enum endpoint_near near) {
    size_t scheme_len = str_find(url, STR("://"));
    struct str scheme = str_head(url, scheme_len);
    struct str host = host_of(str_skip(url, scheme_len + 3));
    bool https = str_equal_nocase(scheme, STR("https"));
    if (host.len == 0 || (!https && !str_equal_nocase(scheme, STR("http")))) return false;
    switch (place_of(host)) {
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
