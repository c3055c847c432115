/* The providers: those listed in the file, and well-known ones by name. */
#include "config/rows.h"

#include "base/nearest.h"
#include "provider/dialect.h"

#include <stdio.h>

/* Providers that need not be listed. */
static const struct known {
    const char *name, *kind;
    const char *base_url;   /* NULL: the vendor's own, which the dialect knows */
    const char *key_env;    /* NULL: none, or the vendor's own */
    const char *url_env[2]; /* the first one set counts */
    const char *models[5];  /* how the names of its models begin */
    const char *usual;      /* a small model of it, for a trial; NULL: none is known */
} known[] = {
    {.name = "scripted", .kind = "scripted"},
    {.name = "openai",
     .usual = "gpt-5-mini",
     .kind = "openai",
     .url_env = {"OPENAI_BASE_URL", "CRAWBL_OPENAI_BASE_URL"},
     .models = {"gpt-", "chatgpt-", "o1", "o3", "o4"}},
    {.name = "anthropic",
     .usual = "claude-haiku-4-5",
     .kind = "anthropic",
     .url_env = {"ANTHROPIC_BASE_URL"},
     .models = {"claude-"}},
    {.name = "gemini",
     .usual = "gemini-2.5-flash",
     .kind = "gemini",
     .url_env = {"GEMINI_BASE_URL"},
     .models = {"gemini-"}},
    {.name = "openrouter",
     .usual = "openai/gpt-5-mini",
     .kind = "openai",
     .base_url = "https://openrouter.ai/api/v1",
     .key_env = "OPENROUTER_API_KEY",
     .url_env = {"OPENROUTER_BASE_URL"}},
    {.name = "ollama",
     .kind = "openai",
     .base_url = "http://127.0.0.1:11434/v1",
     .url_env = {"OLLAMA_HOST", "OLLAMA_BASE_URL"}},
    {.name = "lmstudio",
     .kind = "openai",
     .base_url = "http://127.0.0.1:1234/v1",
     .url_env = {"LMSTUDIO_BASE_URL"}},
    {.name = "vllm",
     .kind = "openai",
     .base_url = "http://127.0.0.1:8000/v1",
     .url_env = {"VLLM_BASE_URL"}},
    {.name = "llamacpp",
     .kind = "openai",
     .base_url = "http://127.0.0.1:8080/v1",
     .url_env = {"LLAMACPP_BASE_URL"}},
};

#define OLLAMA_PORT ":11434"

static const struct known *find_known(struct str name) {
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (str_equal(name, str_from(known[i].name))) return &known[i];
    }
    return NULL;
}

struct str config_vendor_of(struct str model) {
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        for (size_t m = 0; m < ARRAY_LEN(known[i].models) && known[i].models[m]; m++) {
            if (str_starts(model, str_from(known[i].models[m]))) return str_from(known[i].name);
        }
    }
    return STR_EMPTY;
}

void config_offer_providers(const struct config *config, struct nearest *nearest) {
    for (size_t i = 0; i < config->provider_count; i++)
        nearest_offer(nearest, config->providers[i].name);
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        nearest_offer(nearest, str_from(known[i].name));
}

static bool providers_too_large(struct err *e) {
    return err_set(e, ERR_TOO_LARGE, "the settings are too large");
}

/* --- address ------------------------------------------------------------------------------ */

/* The part between "://" and the path. */
static struct str providers_host_of(struct str url) {
    struct str rest = str_skip(url, str_find(url, STR("://")) + 3);
    return str_head(rest, str_find_byte(rest, '/'));
}

/* Kept without the slash at its end. Errors do not repeat the text, because it may contain a
 * secret. */
bool config_keep_url(struct config *config, struct str url, struct str *ret, struct err *e) {
    while (str_ends(url, STR("/"))) url.len--;
    if (!str_starts(url, STR("http://")) && !str_starts(url, STR("https://")))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "it is not an address; write it like https://host/v1");
    for (size_t i = 0; i < url.len; i++) {
        if (url.at[i] <= ' ' || url.at[i] > '~')
            return err_set(e, ERR_INVALID_ARGUMENT,
                           "it holds a space or a character that no address has");
    }
    struct str host = providers_host_of(url);
    if (host.len == 0) return err_set(e, ERR_INVALID_ARGUMENT, "it names no host");
    if (str_find_byte(host, '@') < host.len)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "a password cannot stand in an address; use key_env or key_file");
    if (str_find_byte(url, '?') < url.len || str_find_byte(url, '#') < url.len)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "'?' and '#' cannot stand in it; put what follows '?' under `query`");
    return arena_str(config->arena, url, ret) || providers_too_large(e);
}

static bool has_port(struct str host) {
    size_t bracket = str_find_byte(host, ']');
    struct str rest = str_skip(host, bracket < host.len ? bracket : 0);
    return str_find_byte(rest, ':') < rest.len;
}

/* OLLAMA_HOST is made for its server: "0.0.0.0", ":11434", "host:port" or a whole address. */
static bool keep_ollama(struct config *config, struct str text, struct str *ret,
                        struct err *e) {
    struct buf url;
    bool whole = str_find(text, STR("://")) < text.len;
    while (str_ends(text, STR("/"))) text.len--;
    struct str host = whole ? text : str_head(text, str_find_byte(text, '/'));
    buf_init(&url, KIB);
    if (!whole) {
        struct str everywhere = STR("0.0.0.0");
        buf_append(&url, STR("http://"));
        if (str_starts(host, everywhere)) host = str_skip(host, everywhere.len);
        if (host.len == 0 || host.at[0] == ':') buf_append(&url, STR("127.0.0.1"));
    }
    buf_append(&url, host);
    if (!whole && !has_port(host)) buf_append(&url, STR(OLLAMA_PORT));
    if (!str_ends(text, STR("/v1"))) buf_append(&url, STR("/v1"));
    bool done =
        buf_ok(&url) ? config_keep_url(config, buf_str(&url), ret, e) : providers_too_large(e);
    buf_done(&url);
    return done;
}

/* The value of its variables, else the well-known one. */
static bool find_url(struct config *config, const struct config_input *input,
                     const struct known *from, struct str *ret, struct err *e) {
    if (strcmp(from->name, "openai") == 0 && config->openai_url.len)
        return config_keep_url(config, config->openai_url, ret, e) ||
               err_add(e, "agent.openai_base_url");
    for (size_t i = 0; i < ARRAY_LEN(from->url_env) && from->url_env[i]; i++) {
        struct str value = config_env(input, from->url_env[i]);
        if (!value.at) continue;
        bool ollama = strcmp(from->name, "ollama") == 0;
        return (ollama ? keep_ollama : config_keep_url)(config, value, ret, e) ||
               err_add(e, "%s", from->url_env[i]);
    }
    if (from->base_url) *ret = str_from(from->base_url);
    return true;
}

/* --- key ---------------------------------------------------------------------------------- */

void config_warn_of_clear_key(struct config *config, const char *what, struct str name,
                              struct str url, struct str key) {
    static const char *const near[] = {"127.", "localhost", "[::1]"};
    struct str host = providers_host_of(url);
    if (!key.len || !str_starts(url, STR("http://"))) return;
    for (size_t i = 0; i < ARRAY_LEN(near); i++) {
        if (str_starts(host, str_from(near[i]))) return;
    }
    config_warn(config,
                "the key of %s '" STR_FMT "' is sent to " STR_FMT
                " without encryption; use https://",
                what, STR_ARG(name), STR_ARG(host));
}

static bool find_key(struct config *config, const struct config_input *input,
                     struct config_provider *provider, const struct config_key_names *names,
                     struct err *e) {
    if (names->count) provider->key_name = names->names[0];
    if (!config_find_key(config, input, names, &provider->key, &provider->key_source, e))
        return false;
    config_warn_of_clear_key(config, "provider", provider->name, provider->base_url,
                             provider->key);
    return true;
}

static struct config_key_names vendor_keys(struct str kind) {
    struct config_key_names names = {.file = STR_EMPTY};
    const struct dialect *dialect = dialect_find(kind);
    for (size_t i = 0; dialect && i < ARRAY_LEN(dialect->key_env) && dialect->key_env[i]; i++)
        names.names[names.count++] = str_from(dialect->key_env[i]);
    return names;
}

static struct config_key_names known_keys(const struct known *from) {
    if (!from->base_url) return vendor_keys(str_from(from->kind));
    struct config_key_names names = {.file = STR_EMPTY};
    if (from->key_env) names.names[names.count++] = str_from(from->key_env);
    return names;
}

/* --- by name ------------------------------------------------------------------------------ */

/* An entry of the list, before its provider is resolved. */
struct provider_entry {
    struct config_provider provider;
    const struct yaml *kind, *base_url;
    struct str key_env, key_file;
};

static const struct provider_entry blank = {.provider = {.kind = STR_INIT("scripted"),
                                                         .base_url = STR_INIT(""),
                                                         .model = STR_INIT(""),
                                                         .query = STR_INIT(""),
                                                         .key = STR_INIT(""),
                                                         .key_source = STR_INIT(""),
                                                         .key_name = STR_INIT(""),
                                                         .key_header = STR_INIT(""),
                                                         .connect_ms = CONFIG_UNSET,
                                                         .first_byte_ms = CONFIG_UNSET,
                                                         .stall_ms = CONFIG_UNSET,
                                                         .total_ms = CONFIG_UNSET,
                                                         .retries = CONFIG_UNSET}};

static struct config_provider *find_listed(struct config *config, struct str name) {
    struct config_provider *providers = (struct config_provider *)config->providers;
    for (size_t i = 0; i < config->provider_count; i++) {
        if (str_equal(providers[i].name, name)) return &providers[i];
    }
    return NULL;
}

/* A new entry, filled with `from`; NULL: the list is full, and why. */
static struct config_provider *
next_provider(struct config *config, const struct config_provider *from, struct err *e) {
    struct config_provider *providers = (struct config_provider *)config->providers;
    if (config->provider_count == CONFIG_PROVIDERS_MAX) {
        err_set(e, ERR_TOO_LARGE, "there are more than %d providers", CONFIG_PROVIDERS_MAX);
        return NULL;
    }
    if (!providers) {
        providers = arena_alloc(config->arena, CONFIG_PROVIDERS_MAX * sizeof(*providers));
        config->providers = providers;
    }
    if (!providers) {
        providers_too_large(e);
        return NULL;
    }
    struct config_provider *kept = &providers[config->provider_count++];
    *kept = *from;
    return kept;
}

bool config_provider_get(struct config *config, const struct config_input *input,
                         struct str name, struct config_provider **ret, struct err *e) {
    *ret = find_listed(config, name);
    const struct known *from = find_known(name);
    if (*ret || !from) return true;
    struct config_key_names keys = known_keys(from);
    struct config_provider provider = blank.provider;
    provider.name = str_from(from->name);
    provider.kind = str_from(from->kind);
    if (!find_url(config, input, from, &provider.base_url, e)) return false;
    *ret = next_provider(config, &provider, e); /* before its key: freed with it */
    return *ret && find_key(config, input, *ret, &keys, e);
}

bool config_know_providers(struct config *config, const struct config_input *input,
                           struct err *e) {
    struct config_provider *provider;
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (!config_provider_get(config, input, str_from(known[i].name), &provider, e))
            return false;
    }
    return true;
}

struct str config_usual_model(struct str provider) {
    const struct known *from = find_known(provider);
    return from && from->usual ? str_from(from->usual) : STR_EMPTY;
}

/* --- in the file -------------------------------------------------------------------------- */

/* Headers that the request itself makes. */
static const char *const own_headers[] = {"host", "content-length", "transfer-encoding",
                                          "connection", NULL};

bool config_header_name(const struct yaml *node, struct err *e) {
    if (!node->key.len || !str_is_plain(node->key, "-_"))
        return yaml_err_key(e, node, "'" STR_FMT "' is not a header name",
                            STR_ARG(str_head(node->key, 40)));
    for (size_t i = 0; own_headers[i]; i++) {
        if (str_equal_nocase(node->key, str_from(own_headers[i])))
            return yaml_err_key(e, node, "the header '%s' is made by the request itself",
                                own_headers[i]);
    }
    return true;
}

/* One header of a map. */
static bool read_header(const struct yaml *node, struct config_header *ret, struct err *e) {
    if (!config_header_name(node, e)) return false;
    ret->name = node->key;
    if (!yaml_value(node, YAML_TEXT, &ret->value, e)) return false;
    for (size_t i = 0; i < ret->value.len; i++) {
        unsigned char byte = (unsigned char)ret->value.at[i];
        if (byte < ' ' || byte > '~')
            return yaml_err(e, node, "this value holds a character that no header carries");
    }
    return true;
}

bool config_read_headers(const struct reading *reading, const struct yaml *map,
                         const struct config_header **ret, size_t *ret_count, struct err *e) {
    if (!config_want(map, YAML_MAP, "headers as a map, such as {x-team: blue}", e))
        return false;
    struct config_header *headers =
        arena_alloc(reading->config->arena, (map->count + 1) * sizeof(*headers));
    size_t count = 0;
    if (!headers) return yaml_err(e, map, "this map is too large");
    for (const struct yaml *node = map->first; node; node = node->next) {
        if (!read_header(node, &headers[count++], e)) return false;
    }
    *ret = headers;
    *ret_count = count;
    return true;
}

static bool read_headers(const struct reading *reading, const struct yaml *map, struct err *e) {
    struct config_provider *ret = &((struct provider_entry *)reading->entry)->provider;
    return config_read_headers(reading, map, &ret->headers, &ret->header_count, e);
}

#define SCRIPTED "scripted" /* our own player of scripts, beside the dialects */

static bool needs_kind(const struct yaml *node, struct str provider, struct err *e) {
    struct buf names;
    buf_init(&names, KIB);
    for (size_t i = 0; i < DIALECT_COUNT; i++)
        buf_printf(&names, "%s%s, ", dialects[i]->name, i ? "" : " (and all that speak it)");
    yaml_err(e, node, "provider '" STR_FMT "' needs the key 'kind': " STR_FMT SCRIPTED,
             STR_ARG(provider), STR_ARG(buf_str(&names)));
    buf_done(&names);
    return false;
}

/* Its own value, else that of the known provider of this name. */
static bool providers_read_kind(const struct yaml *node, const struct provider_entry *nodes,
                                struct str *ret, struct err *e) {
    const char *kinds[DIALECT_COUNT + 2] = {SCRIPTED};
    const struct known *from = find_known(nodes->provider.name);
    unsigned kind;
    if (!nodes->kind) {
        if (from) *ret = str_from(from->kind);
        return from || needs_kind(node, nodes->provider.name, e);
    }
    for (size_t i = 0; i < DIALECT_COUNT; i++) kinds[i + 1] = dialects[i]->name;
    if (!config_choice(nodes->kind, kinds, &kind, e)) return false;
    *ret = str_from(kinds[kind]);
    return true;
}

static bool read_base_url(struct config *config, const struct config_input *input,
                          const struct yaml *node, const struct provider_entry *nodes,
                          struct str *ret, struct err *e) {
    const struct known *from = find_known(nodes->provider.name);
    struct err why;
    struct str text;
    if (nodes->base_url) {
        if (!yaml_value(nodes->base_url, YAML_TEXT, &text, e)) return false;
        return config_keep_url(config, text, ret, &why) ||
               yaml_err(e, nodes->base_url, "base_url: %s", why.text);
    }
    return !from || find_url(config, input, from, ret, &why) ||
           yaml_err(e, node, "%s", why.text);
}

/* The variables to read: those the entry names, else those of the known provider of this name.
 * An unknown server must never be sent a vendor's key. */
static struct config_key_names wanted_keys(const struct provider_entry *nodes,
                                           const struct config_provider *provider) {
    const struct known *from = find_known(provider->name);
    if (nodes->key_env.len)
        return (struct config_key_names){.names = {nodes->key_env}, .count = 1};
    if (from) return known_keys(from);
    return vendor_keys(provider->base_url.len ? STR_EMPTY : provider->kind);
}

static bool read_provider_key(struct config *config, const struct config_input *input,
                              const struct yaml *node, const struct provider_entry *nodes,
                              struct config_provider *provider, struct err *e) {
    struct config_key_names names = wanted_keys(nodes, provider);
    struct err why;
    struct buf room;
    buf_init(&room, 64 * KIB);
    names.file =
        nodes->key_file.len ? config_from_folder(config, nodes->key_file, &room) : STR_EMPTY;
    bool done = find_key(config, input, provider, &names, &why);
    buf_done(&room);
    if (done) return true;
    const struct yaml *file = yaml_find(node, STR("key_file"));
    return yaml_err(e, file ? file : node, "%s", why.text);
}

bool config_refuse_key(const struct yaml *api_key, struct err *e) {
    return yaml_err_key(e, api_key,
                        "a key never stands in the settings; name the variable that holds it "
                        "with key_env, or a file with key_file");
}

static bool refuse_secret(const struct reading *reading, const struct yaml *api_key,
                          struct err *e) {
    (void)reading;
    return config_refuse_key(api_key, e);
}

/* In the order of enum live_which. */
static const char *const realtimes[] = {"auto", "always", "never", NULL};

#define ROW_OF struct provider_entry

/* clang-format off */
static const struct setting rows[] = {
    {.key = "name", NAME(provider.name), .required = true, .help = "agents say NAME/MODEL"},
    {.key = "api_key", .read = refuse_secret,
     .help = "refused: a key never stands in the settings"},
    {.key = "kind", NODE(kind),
     .help = "the API that it speaks: openai (and all that speak it), openai-responses, "
             "anthropic, gemini, or scripted"},
    {.key = "base_url", NODE(base_url), .help = "its address; left out: the vendor's own"},
    {.key = "model", TEXT(provider.model),
     .help = "of agents that name the provider and no model"},
    {.key = "key_env", NAME(key_env), .help = "the variable that holds the key"},
    {.key = "key_file", TEXT(key_file), .help = "a file that holds it"},
    {.key = "key_header", NAME(provider.key_header),
     .help = "carries the key as it is, instead of the usual header"},
    {.key = "query", TEXT(provider.query), .help = "what follows '?' in each request"},
    {.key = "headers", .read = read_headers, .help = "a map of more headers"},
    {.key = "connect", DURATION(provider.connect_ms), .help = "for a connection"},
    {.key = "first_byte", DURATION(provider.first_byte_ms), .help = "until an answer begins"},
    {.key = "stall", DURATION(provider.stall_ms), .help = "between two pieces of an answer"},
    {.key = "total", DURATION(provider.total_ms), .help = "for a whole answer"},
    {.key = "retries", COUNT(provider.retries), .most = 10,
     .beyond = "more than 10 retries do not help", .help = "before the first word only"},
    {.key = "http2", BOOL(provider.http2),
     .help = "its calls share an HTTP/2 connection where its server has it (over http: it is tried "
             "first); what breaks the connection breaks them all. Left out: HTTP/1.1"},
    {.key = "forbid_link_local", BOOL(provider.forbid_link_local),
     .help = "never ask it at a link-local or private IPv6 address, where clouds serve "
             "credentials; always so for connectors"},
    {.key = "realtime", CHOICE(provider.realtime), .choices = realtimes,
     .help = "kinds openai and openai-responses: which of its models a realtime session talks "
             "to over a WebSocket: `auto` those with 'realtime' in their name, `always`, or "
             "`never`"},
    {.key = "realtime_voice", NAME(provider.realtime_voice),
     .help = "the voice that such a model speaks with; left out: its own"},
    {.key = "join_users", BOOL(provider.join_users),
     .help = "kind openai: for chat templates that refuse two messages of users in a row"},
};
/* clang-format on */

/* A provider of a wrong kind makes no requests. */
static bool keep_provider(const struct reading *reading, const struct yaml *node,
                          struct err *e) {
    struct config *config = reading->config;
    struct provider_entry *entry = reading->entry;
    struct config_provider *provider = &entry->provider;
    if (!provider->name.len) return true; /* that was noted */
    if (str_find_byte(provider->name, '/') < provider->name.len)
        return yaml_err(e, yaml_find(node, STR("name")),
                        "a provider's name holds no '/': models are called provider/model");
    if (find_listed(config, provider->name))
        return yaml_err(e, node, "a second provider '" STR_FMT "'; give it another name",
                        STR_ARG(provider->name));
    if (!config_step(config, providers_read_kind(node, entry, &provider->kind, e), e) ||
        !config_step(config,
                     read_base_url(config, reading->input, node, entry, &provider->base_url, e),
                     e))
        return false;
    provider->listed = true;
    provider->at = node;
    provider->broken = config->problem_count > reading->problems;
    struct config_provider *kept = next_provider(config, provider, e);
    if (!kept) return yaml_err(e, node, "there are too many providers");
    return kept->broken || read_provider_key(config, reading->input, node, entry, kept, e);
}

/* Providers that are only known by name are added later. */
const struct config_list config_provider_list = {
    .key = "providers",
    .what = "a list of providers",
    .schema = {.what = "a provider", ROWS(rows), .blank = &blank, .every = true},
    .keep = keep_provider};
