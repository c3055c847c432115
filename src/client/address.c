#include "client/http.h"

#include "client/url.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

struct range {
    unsigned char bytes[6]; /* the remaining bytes are zero */
    unsigned bits;
};

/* Source: IANA's registries of special-purpose IPv4 and IPv6 addresses (RFC 6890), and the
 * multicast and reserved spaces. */
static const struct range not_public_4[] = {
    {{0}, 8},                 /* this network */
    {{10}, 8},                /* private (RFC 1918) */
    {{100, 64}, 10},          /* shared with a carrier's NAT (RFC 6598) */
    {{127}, 8},               /* loopback */
    {{168, 63, 129, 16}, 32}, /* Azure serves the set-up of its machines there */
    {{169, 254}, 16},         /* link-local; clouds serve machine credentials there */
    {{172, 16}, 12},          /* private */
    {{192, 0, 0}, 24},        /* protocol assignments */
    {{192, 0, 2}, 24},        /* documentation (RFC 5737) */
    {{192, 88, 99}, 24},      /* 6to4 relays, withdrawn (RFC 7526) */
    {{192, 168}, 16},         /* private */
    {{198, 18}, 15},          /* benchmarks (RFC 2544) */
    {{198, 51, 100}, 24},     /* documentation */
    {{203, 0, 113}, 24},      /* documentation */
    {{224}, 4},               /* multicast */
    {{240}, 4},               /* reserved, broadcast */
};

/* Global addresses are allocated from 2000::/3. Everything outside needs no row: unspecified,
 * loopback, IPv4 mapped and compatible, NAT64 (64:ff9b::/96 and 64:ff9b:1::/48), discard,
 * segment routing, unique local, link-local, site-local, multicast. */
static const struct range global_6 = {{0x20}, 3};

static const struct range not_public_6[] = {
    {{0x20, 0x01, 0x00, 0x00}, 23}, /* protocol assignments: Teredo, ORCHID, benchmarking */
    {{0x20, 0x01, 0x0d, 0xb8}, 32}, /* documentation */
    {{0x20, 0x02}, 16},             /* 6to4: contains an IPv4 address */
    {{0x3f, 0xff, 0x00}, 20},       /* documentation (RFC 9637) */
};

static bool is_in(const unsigned char *address, const struct range *range) {
    unsigned whole = range->bits / 8, rest = range->bits % 8;
    assert(whole + (rest > 0) <= sizeof(range->bytes));
    if (memcmp(address, range->bytes, whole) != 0) return false;
    return rest == 0 || ((address[whole] ^ range->bytes[whole]) >> (8 - rest)) == 0;
}

static bool is_in_any(const unsigned char *address, const struct range *ranges, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (is_in(address, &ranges[i])) return true;
    }
    return false;
}

bool http_address_is_public(const unsigned char *bytes, size_t len) {
    if (len == 4) return !is_in_any(bytes, not_public_4, ARRAY_LEN(not_public_4));
    if (len != 16 || !is_in(bytes, &global_6)) return false;
    return !is_in_any(bytes, not_public_6, ARRAY_LEN(not_public_6));
}

/* --- addresses that hold what is not for others ------------------------------------------- */

/* Source: contracts' endpoint rule (link-local and unique local), and the addresses outside of
 * these ranges where clouds serve the credentials or the set-up of a machine. */
static const struct range link_local_4[] = {
    {{169, 254}, 16},           /* link-local: AWS, Google, Azure, Oracle, ... */
    {{100, 100, 100, 200}, 32}, /* Alibaba */
    {{168, 63, 129, 16}, 32},   /* Azure's own */
    {{192, 0, 0, 192}, 32},     /* Oracle, Classic */
};

static const struct range link_local_6[] = {
    {{0xfe, 0x80}, 10}, /* link-local */
    {{0xfc}, 7},        /* unique local; AWS serves credentials at fd00:ec2::254 */
};

/* IPv6 forms of an IPv4 address: the bits that announce one, and where its bytes are. */
static const struct {
    unsigned char prefix[12];
    unsigned prefix_len, at;
} forms[] = {
    /* clang-format off */
    {{[10] = 0xff, [11] = 0xff},      12, 12}, /* mapped, ::ffff:a.b.c.d */
    {{0},                             12, 12}, /* compatible, ::a.b.c.d */
    {{[8] = 0xff, [9] = 0xff},        12, 12}, /* translated, ::ffff:0:a.b.c.d */
    {{0x00, 0x64, 0xff, 0x9b},        12, 12}, /* NAT64 (RFC 6052) */
    {{0x00, 0x64, 0xff, 0x9b, 0, 1},   6, 12}, /* NAT64, local use (RFC 8215), suffix form */
    {{0x20, 0x02},                     2,  2}, /* 6to4 */
    /* clang-format on */
};

static bool is_link_local_4(const unsigned char *bytes) {
    return is_in_any(bytes, link_local_4, ARRAY_LEN(link_local_4));
}

bool http_address_is_link_local(const unsigned char *bytes, size_t len) {
    if (len == 4) return is_link_local_4(bytes);
    if (len != 16) return false;
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        if (memcmp(bytes, forms[i].prefix, forms[i].prefix_len) == 0 &&
            is_link_local_4(bytes + forms[i].at))
            return true;
    }
    return is_in_any(bytes, link_local_6, ARRAY_LEN(link_local_6));
}

bool http_address_is_in_reach(enum http_reach reach, const unsigned char *bytes, size_t len) {
    switch (reach) {
    case HTTP_PUBLIC_ONLY: return http_address_is_public(bytes, len);
    case HTTP_NOT_LINK_LOCAL: return !http_address_is_link_local(bytes, len);
    default: return true;
    }
}

/* --- the text of a URL -------------------------------------------------------------------- */

/* An address in any spelling that is dialled: "127.0.0.1", "2130706433", "0x7f.1", "::1". Any
 * other host is a name. */
static bool is_host_in_reach(enum http_reach reach, struct str host) {
    char text[64];
    unsigned char bytes[16];
    struct in_addr four;
    bool local =
        str_equal_nocase(host, STR("localhost")) ||
        (host.len > 10 && str_equal_nocase(str_skip(host, host.len - 10), STR(".localhost")));
    if (local) return reach != HTTP_PUBLIC_ONLY;
    if (host.len >= sizeof(text)) return true;
    memcpy(text, host.at, host.len);
    text[host.len] = '\0';
    if (inet_pton(AF_INET6, text, bytes) == 1)
        return http_address_is_in_reach(reach, bytes, sizeof(bytes));
    if (!inet_aton(text, &four)) return true;
    memcpy(bytes, &four, sizeof(four));
    return http_address_is_in_reach(reach, bytes, sizeof(four));
}

bool http_url_is_in_reach(enum http_reach reach, struct str text) {
    struct url url = {0};
    enum url_kind kind = url_read(text, &url);
    if (!text.len || kind == URL_BROKEN || kind == URL_OTHER_SCHEME) return false;
    if (kind == URL_RARE) return true;
    if (url.user.at && reach == HTTP_PUBLIC_ONLY) return false;
    return is_host_in_reach(reach, url.host);
}
