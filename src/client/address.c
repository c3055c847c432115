#include "client/http.h"

#include <assert.h>

struct range {
    unsigned char bytes[6]; /* the remaining bytes are zero */
    unsigned bits;
};

/* Source: IANA's registries of special-purpose IPv4 and IPv6 addresses (RFC 6890), and the
 * multicast and reserved spaces. */
static const struct range not_public_4[] = {
    {{0}, 8},             /* this network */
    {{10}, 8},            /* private (RFC 1918) */
    {{100, 64}, 10},      /* shared with a carrier's NAT (RFC 6598) */
    {{127}, 8},           /* loopback */
    {{169, 254}, 16},     /* link-local; clouds serve machine credentials there */
    {{172, 16}, 12},      /* private */
    {{192, 0, 0}, 24},    /* protocol assignments */
    {{192, 0, 2}, 24},    /* documentation (RFC 5737) */
    {{192, 88, 99}, 24},  /* 6to4 relays, withdrawn (RFC 7526) */
    {{192, 168}, 16},     /* private */
    {{198, 18}, 15},      /* benchmarks (RFC 2544) */
    {{198, 51, 100}, 24}, /* documentation */
    {{203, 0, 113}, 24},  /* documentation */
    {{224}, 4},           /* multicast */
    {{240}, 4},           /* reserved, broadcast */
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
