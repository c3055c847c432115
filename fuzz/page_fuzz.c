/* The lines are a Host, an Origin and a Sec-Fetch-Site. Who is let in is written down here once
 * more, as spellings: what the rules let in is one of them, what they refuse is none, and it is
 * the text itself that counts, not what stands behind it. */
#include "route/page.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CUT_MAX_BYTES 256 /* longer input is not cut */

static const struct str names[] = {STR_INIT("Agent.Example"), STR_INIT("proxy.")};
static const struct str pages[] = {STR_INIT("https://studio.example"), STR_INIT("null")};
static const struct page_rules rules = {.hosts = {names, ARRAY_LEN(names)},
                                        .origins = {pages, ARRAY_LEN(pages)}};

/* --- the spellings ------------------------------------------------------------------------ */

struct spelling {
    struct str host;
    unsigned long port; /* 0: none */
    bool ok;
};

static bool is_of(struct str text, const char *alphabet) {
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] == '\0' || !strchr(alphabet, text.at[i])) return false;
    return true;
}

/* At most so many digits that they fit; those that begin it may be zeros. */
static unsigned long port_of(struct str digits) {
    unsigned long port = 0;
    for (size_t i = 0; i < digits.len && port <= UINT16_MAX; i++)
        port = 10 * port + (unsigned long)(digits.at[i] - '0');
    return port;
}

/* From the right: the port stands behind the last colon that is in no brackets. */
static struct spelling spell(struct str authority) {
    size_t colon = authority.len;
    while (colon > 0 && authority.at[colon - 1] != ':' && authority.at[colon - 1] != ']')
        colon--;
    bool has_port = colon > 0 && authority.at[colon - 1] == ':';
    struct str digits = has_port ? str_skip(authority, colon) : STR_EMPTY;
    struct spelling ret = {.host = has_port ? str_head(authority, colon - 1) : authority,
                           .port = 0,
                           .ok = is_of(digits, "0123456789")};
    if (ret.ok) ret.port = port_of(digits);
    if (ret.port > UINT16_MAX || (digits.len && !ret.port) || !ret.host.len) ret.ok = false;
    /* Any other colon stands in brackets that begin the host. */
    size_t bracket =
        str_starts(ret.host, STR("[")) ? str_find_byte(ret.host, ']') : ret.host.len;
    struct str outside = str_skip(ret.host, bracket < ret.host.len ? bracket : 0);
    if (str_find_byte(outside, ':') < outside.len) ret.ok = false;
    return ret;
}

/* What the address is once it has been read and written again; "" when it is none. */
static void rewrite(int family, struct str text, char ret[INET6_ADDRSTRLEN]) {
    char in[INET6_ADDRSTRLEN], address[sizeof(struct in6_addr)];
    ret[0] = '\0';
    if (text.len >= sizeof(in) || !is_of(text, "0123456789abcdefABCDEF:.")) return;
    snprintf(in, sizeof(in), STR_FMT, STR_ARG(text));
    if (inet_pton(family, in, address) == 1) inet_ntop(family, address, ret, INET6_ADDRSTRLEN);
}

static bool is_address_of_here(struct str host) {
    char text[INET6_ADDRSTRLEN];
    if (!str_starts(host, STR("["))) {
        rewrite(AF_INET, host, text);
        return strncmp(text, "127.", 4) == 0;
    }
    if (host.len < 2) return false;
    rewrite(AF_INET6, str_skip(str_head(host, host.len - 1), 1), text);
    return strcmp(text, "::1") == 0 || strncmp(text, "::ffff:127.", 11) == 0;
}

static bool is_name_of_here(struct str host) {
    static const struct str tail = STR_INIT(".localhost");
    if (str_ends(host, STR("."))) host.len--;
    bool below =
        host.len > tail.len && str_equal_nocase(str_skip(host, host.len - tail.len), tail);
    return below || str_equal_nocase(host, STR("localhost")) ||
           str_equal_nocase(host, STR("agent.example")) || str_equal_nocase(host, STR("proxy"));
}

static bool is_allowed(struct str authority) {
    struct spelling it = spell(authority);
    return it.ok && (is_address_of_here(it.host) || is_name_of_here(it.host));
}

/* --- a Host ------------------------------------------------------------------------------- */

static enum page_verdict of_host(struct str host) {
    const struct page_question asked = {
        .reach = REACH_LOOPBACK, .authority = host, .host = host};
    return page_judge(&rules, &asked);
}

static void check_host(struct str host) {
    if (host.len == 0) return;
    assert((of_host(host) == PAGE_FINE) == is_allowed(host));
}

/* What was cut off does not count: alone in its memory the rest is judged the same. */
static void check_cuts(struct str host) {
    if (host.len > CUT_MAX_BYTES) return;
    for (size_t len = 1; len <= host.len; len++) {
        char *alone = mem_alloc(len);
        memcpy(alone, host.at, len);
        check_host(str_of(alone, len));
        assert(of_host(str_of(alone, len)) == of_host(str_head(host, len)));
        free(alone);
    }
}

/* --- an Origin ---------------------------------------------------------------------------- */

static bool starts_nocase(struct str text, struct str head) {
    return text.len > head.len && str_equal_nocase(str_head(text, head.len), head);
}

static struct spelling spell_origin(struct str origin) {
    bool secure = starts_nocase(origin, STR("https://"));
    if (!secure && !starts_nocase(origin, STR("http://")))
        return (struct spelling){.host = STR_EMPTY};
    struct spelling ret = spell(str_skip(origin, secure ? 8 : 7));
    if (!ret.port) ret.port = secure ? 443 : 80;
    return ret;
}

static bool is_page_of(struct str origin, struct str authority) {
    struct spelling page = spell_origin(origin), here = spell(authority);
    if (!here.port) here.port = starts_nocase(origin, STR("https://")) ? 443 : 80;
    return page.ok && here.ok && page.port == here.port &&
           str_equal_nocase(page.host, here.host);
}

static bool is_listed(struct str origin) {
    struct spelling page = spell_origin(origin);
    bool studio = page.ok && starts_nocase(origin, STR("https://")) && page.port == 443 &&
                  str_equal_nocase(page.host, STR("studio.example"));
    return studio || str_equal(origin, STR("null"));
}

static void check_page(struct str authority, struct str origin, struct str site) {
    const struct page_question asked = {.reach = REACH_NET,
                                        .authority = authority,
                                        .host = authority,
                                        .origin = origin,
                                        .site = site};
    bool crosses = site.at && str_equal_nocase(site, STR("cross-site"));
    bool welcome = is_listed(origin) || (is_page_of(origin, authority) && !crosses);
    if (!origin.at) welcome = !crosses;
    assert(page_judge(&rules, &asked) == (welcome ? PAGE_FINE : PAGE_FOREIGN_ORIGIN));
    assert(!origin.at || page_is_listed(&rules, origin) == is_listed(origin));
}

/* --- settings ----------------------------------------------------------------------------- */

/* What may be listed is let in once it is listed. */
static void check_entries(struct str host, struct str origin) {
    const struct page_rules mine = {.hosts = {&host, 1}, .origins = {&origin, 1}};
    const struct page_question asked = {
        .reach = REACH_LOOPBACK, .authority = host, .host = host};
    if (page_host_ok(host)) {
        assert(is_of(host, "0123456789abcdefghijklmnopqrstuvwxyz"
                           "ABCDEFGHIJKLMNOPQRSTUVWXYZ.-_[]:"));
        assert(page_judge(&mine, &asked) == PAGE_FINE);
    }
    if (page_origin_ok(origin)) assert(page_is_listed(&mine, origin));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str origin, site, host = str_split(str_of(data, size), '\n', &origin);
    origin = str_split(origin, '\n', &site);
    check_host(host);
    check_cuts(host);
    check_page(host, origin, site);
    check_entries(host, origin);
    return 0;
}
