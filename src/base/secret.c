#include "base/secret.h"

/* Prefixes of vendors' keys. */
static const struct str key_heads[] = {
    STR_INIT("sk-"),    STR_INIT("sk_"),   STR_INIT("pk-"),  STR_INIT("rk-"),
    STR_INIT("AIza"),   STR_INIT("gsk_"),  STR_INIT("xai-"), STR_INIT("hf_"),
    STR_INIT("eyJ"),    STR_INIT("ya29."), STR_INIT("ghp_"), STR_INIT("pplx-"),
    STR_INIT("nvapi-"), STR_INIT("AKIA"),  STR_INIT("AQ."),
};

/* A key prefix counts only with at least this many bytes after it; shorter ones occur in
 * prose. */
#define HEAD_REST_BYTES 4

/* Whatever follows one of these is a secret. */
static const struct str introductions[] = {
    STR_INIT("bearer "),  STR_INIT("basic "),        STR_INIT("key="),
    STR_INIT("api_key="), STR_INIT("api-key="),      STR_INIT("apikey="),
    STR_INIT("token="),   STR_INIT("access_token="), STR_INIT("password="),
    STR_INIT("secret="),  STR_INIT("signature="),    STR_INIT("sig="),
};

/* A run of letters and digits this long is not a word in any language. Finds keys without a
 * known prefix, some of which are 32 hexadecimal digits. */
#define RANDOM_BYTES 32

static bool secret_is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Bytes that occur in keys or in the mask that vendors replace them with. */
static bool in_key(char c) {
    return secret_is_digit(c) || is_letter(c) || c == '-' || c == '_' || c == '.' || c == '*';
}

/* Bytes that end a value in a header, in a query or in quotes. */
static bool ends_value(char c) {
    return (unsigned char)c <= ' ' || strchr("\"'<>,;&)]}", c) != NULL;
}

size_t secret_run(struct str text) {
    size_t len = 0;
    while (len < text.len && in_key(text.at[len])) len++;
    while (len && text.at[len - 1] == '.') len--; /* the end of a sentence */
    return len;
}

static bool has_head(struct str run) {
    for (size_t i = 0; i < ARRAY_LEN(key_heads); i++) {
        if (str_starts(run, key_heads[i])) return run.len >= key_heads[i].len + HEAD_REST_BYTES;
    }
    return false;
}

static bool is_random(struct str run) {
    size_t digits = 0, letters = 0, longest = 0, from = 0;
    for (size_t i = 0; i < run.len; i++) {
        bool plain = secret_is_digit(run.at[i]) || is_letter(run.at[i]);
        digits += secret_is_digit(run.at[i]);
        letters += is_letter(run.at[i]);
        if (!plain) from = i + 1;
        if (i + 1 - from > longest) longest = i + 1 - from;
    }
    return longest >= RANDOM_BYTES && digits && letters;
}

/* Length of the introduction at the start of `text`, or 0. */
static size_t introduction(struct str text) {
    for (size_t i = 0; i < ARRAY_LEN(introductions); i++) {
        size_t len = introductions[i].len;
        if (text.len > len && str_equal_nocase(str_head(text, len), introductions[i]))
            return len;
    }
    return 0;
}

/* Length of "user:password" when `text` is what follows "://", or 0. */
static size_t userinfo(struct str text) {
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (c == '@') return i;
        if (c == '/' || c == '?' || c == '#' || ends_value(c)) return 0;
    }
    return 0;
}

/* Enough of a run to recognise it. The whole run is hidden, but it is not scanned to its end at
 * each of its dashes. */
#define RUN_LOOKED_AT_BYTES 256

struct secret_piece secret_at(struct str text) {
    size_t shown = introduction(text);
    if (shown) {
        size_t end = shown;
        while (end < text.len && !ends_value(text.at[end])) end++;
        return (struct secret_piece){shown, end - shown};
    }
    if (str_starts(text, STR("://")))
        return (struct secret_piece){3, userinfo(str_skip(text, 3))};
    struct str run = str_head(text, secret_run(str_head(text, RUN_LOOKED_AT_BYTES)));
    if (!has_head(run) && !is_random(run)) return (struct secret_piece){0, 0};
    return (struct secret_piece){0, secret_run(text)};
}

size_t secret_shared(struct str text, struct str known) {
    size_t longest = 0;
    for (size_t from = 0; from < known.len; from++) {
        size_t len = 0;
        while (len < text.len && from + len < known.len && text.at[len] == known.at[from + len])
            len++;
        if (len > longest) longest = len;
    }
    return longest;
}

/* Length of the longest known piece at the start of `text`, or 0 when it is too short to
 * hide. */
static size_t known_piece(struct str text, const struct str *known, size_t known_count) {
    size_t longest = 0;
    for (size_t i = 0; i < known_count; i++) {
        size_t len = secret_shared(text, known[i]);
        if (len >= SECRET_PIECE_BYTES && len > longest) longest = len;
    }
    return longest;
}

bool secret_next(struct str text, size_t from, const struct str *known, size_t known_count,
                 struct secret_span *ret) {
    bool inside = false; /* a word: the previous byte belongs to one */
    for (size_t at = from; at < text.len;) {
        struct str rest = str_skip(text, at);
        bool plain = secret_is_digit(rest.at[0]) || is_letter(rest.at[0]);
        size_t piece = known_piece(rest, known, known_count);
        struct secret_piece found = {0, piece};
        if (!(plain && inside)) {
            struct secret_piece looks = secret_at(rest);
            if (looks.hidden && looks.shown + looks.hidden > piece) found = looks;
        }
        if (found.hidden) {
            *ret = (struct secret_span){at + found.shown, at + found.shown + found.hidden};
            return true;
        }
        inside = plain;
        at++;
    }
    return false;
}

/* Compared without case, '-' and '_'. */
static const char *const names[] = {
    "authorization", "proxyauthorization",
    "apikey",        "xapikey",
    "accesskey",     "secretkey",
    "accesstoken",   "refreshtoken",
    "authtoken",     "bearertoken",
    "idtoken",       "token",
    "password",      "passwd",
    "passphrase",    "secret",
    "clientsecret",  "privatekey",
    "cookie",        "setcookie",
    "credentials",   "xauthtoken",
    "xgoogapikey",   "sessiontoken",
    "signingkey",
};

bool secret_name(struct str name) {
    char plain[24];
    size_t len = 0;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        if (c == '-' || c == '_') continue;
        if (len == sizeof(plain)) return false;
        plain[len++] = (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_equal(str_of(plain, len), str_from(names[i]))) return true;
    }
    return false;
}
