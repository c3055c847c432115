/* The section `issuers`: who signs the tokens of nimi.runtime.v1's callers. */
#include "config/rows.h"

/* Whether a plain URL stays on this machine. */
static bool is_near(struct str url) {
    static const struct str hosts[] = {STR_INIT("127.0.0.1"), STR_INIT("[::1]"),
                                       STR_INIT("localhost")};
    if (!str_starts(url, STR("http://"))) return false;
    struct str rest = str_skip(url, STR("http://").len);
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        struct str after = str_skip(rest, hosts[i].len);
        if (str_starts(rest, hosts[i]) &&
            (after.len == 0 || after.at[0] == ':' || after.at[0] == '/'))
            return true;
    }
    return false;
}

static bool check_url(const struct reading *reading, const struct yaml *node, struct err *e) {
    const struct config_issuer *issuer = reading->entry;
    if (str_starts(issuer->url, STR("https://")) || is_near(issuer->url)) return true;
    return yaml_err(e, node,
                    "keys that decide who a caller is must come over https, or from this "
                    "machine");
}

static bool check_issuer(const struct reading *reading, const struct yaml *node,
                         struct err *e) {
    const struct config *config = reading->config;
    const struct config_issuer *issuer = reading->entry;
    (void)node;
    for (size_t i = 0; i < config->issuer_count; i++) {
        if (str_equal(config->issuers[i].name, issuer->name))
            return yaml_err(e, reading->map, "there is an issuer '" STR_FMT "' already",
                            STR_ARG(str_head(issuer->name, 60)));
    }
    if (config->issuer_count == CONFIG_ISSUERS_MAX)
        return yaml_err(e, reading->map, "there are more than %d issuers", CONFIG_ISSUERS_MAX);
    return true;
}

static bool have_keys(const struct reading *reading, const struct yaml *node, struct err *e) {
    const struct config *config = reading->config;
    (void)node;
    for (size_t i = 0; i < config->issuer_count; i++) {
        const struct config_issuer *issuer = &config->issuers[i];
        if ((issuer->url.len > 0) == (issuer->keys.len > 0))
            return yaml_err(e, issuer->at,
                            "an issuer needs its public keys: either jwks_url or jwks_file");
    }
    return true;
}

#define ROW_OF struct config_issuer

static const struct setting rows[] = {
    {.key = "issuer",
     TEXT(name),
     .required = true,
     .read = check_issuer,
     .help = "what its tokens have as `iss`, letter for letter"},
    {.key = "audience",
     TEXT(audience),
     .required = true,
     .help = "what the `aud` of a token must name"},
    {.key = "jwks_url",
     URL(url),
     .read = check_url,
     .help = "where its key set is fetched, https or this machine"},
    {.key = "jwks_file", CONTENTS(keys), .help = "or a file with its key set (RFC 7517)"},
};

const struct config_list config_issuer_list = {.key = "issuers",
                                               .what = "a list of issuers of tokens",
                                               .schema = {.what = "an issuer", ROWS(rows)},
                                               KEPT_IN(issuers, issuer_count),
                                               .at = offsetof(struct config_issuer, at),
                                               .after = have_keys};
