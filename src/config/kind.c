/* The kinds of values: parsed from text or from a node of the file, and written as text. */
#include "config/rows.h"

#include "base/file.h"
#include "base/id.h"
#include "base/nearest.h"
#include "base/units.h"
#include "wire/json.h"

#include <stdio.h>
#include <sys/un.h>

/* Larger counts are mistakes, and some counts are stored as unsigned int. */
#define COUNT_MAX UINT64_C(1000000000)

#define NANO_DIGITS 9

#define CONTENTS_MAX_BYTES (1 * MIB)

/* The value to parse, and the row it is for. */
struct value {
    const struct setting *row;
    struct config *config;
    struct str text;         /* from a variable, a flag, or a scalar in the file */
    const struct yaml *node; /* of an entry; NULL: there is only the text */
    enum yaml_type type;     /* of the row's kind, for `node` */
};

/* `ret` has the type of the row's kind. */
typedef bool read_fn(const struct value *value, void *ret, struct err *e);

/* --- numbers ------------------------------------------------------------------------------ */

static void put_number(const struct setting *row, void *ret, uint64_t number) {
    if (row->width == sizeof(bool)) {
        *(bool *)ret = number != 0;
    } else if (row->width == sizeof(uint32_t)) {
        uint32_t narrow = (uint32_t)number; /* an enum, or a count of COUNT_MAX at most */
        memcpy(ret, &narrow, sizeof(narrow));
    } else {
        memcpy(ret, &number, sizeof(number));
    }
}

uint64_t setting_number(const struct setting *row, const void *entry) {
    const void *at = (const char *)entry + row->offset;
    uint32_t narrow;
    uint64_t number;
    if (row->width == sizeof(bool)) return *(const bool *)at;
    if (row->width == sizeof(uint32_t)) return memcpy(&narrow, at, sizeof(narrow)), narrow;
    return memcpy(&number, at, sizeof(number)), number;
}

/* Include the position if there is one. */
static bool kind_refuse(const struct value *value, const char *why, struct err *e) {
    return value->node ? yaml_err(e, value->node, "%s", why)
                       : err_set(e, ERR_INVALID_ARGUMENT, "%s", why);
}

/* Check the bounds of the row; the error uses the row's words. */
static bool check_bounds(const struct value *value, uint64_t number, uint64_t scale,
                         struct err *e) {
    const struct setting *row = value->row;
    if (!row->beyond) return true;
    if (number >= row->least * scale && (!row->most || number <= row->most * scale))
        return true;
    char why[ERR_TEXT_BYTES];
    struct str words = str_from(row->beyond);
    size_t at = str_find(words, STR("%s"));
    struct str shown = at < words.len ? str_head(value->text, 40) : STR_EMPTY;
    snprintf(why, sizeof(why), STR_FMT STR_FMT STR_FMT, STR_ARG(str_head(words, at)),
             STR_ARG(shown), STR_ARG(str_skip(words, at + 2)));
    return kind_refuse(value, why, e);
}

static bool all_digits(struct str text) {
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9') return false;
    }
    return true;
}

static bool refuse_decimal(struct str text, struct err *e) {
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "'" STR_FMT "' is not a decimal number such as 0.25",
                   STR_ARG(str_head(text, 40)));
}

/* Parse a decimal with at most `digits` places: "0.25" with 3 is 250. */
static bool read_decimal(struct str text, unsigned digits, uint64_t *ret, struct err *e) {
    struct str fraction;
    struct str whole = str_split(text, '.', &fraction);
    uint64_t number = 0;
    bool point = fraction.at != NULL;
    if (!point) fraction = STR_EMPTY;
    if (!whole.len || !all_digits(whole) || !all_digits(fraction) || (point && !fraction.len))
        return refuse_decimal(text, e);
    if (fraction.len > digits)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "'" STR_FMT "' has more than %u digits after its point",
                       STR_ARG(str_head(text, 40)), digits);
    if (whole.len > 9 || !str_to_u64(whole, &number))
        return err_set(e, ERR_INVALID_ARGUMENT, "'" STR_FMT "' is too large",
                       STR_ARG(str_head(text, 40)));
    for (unsigned i = 0; i < digits; i++) {
        number = number * 10 + (i < fraction.len ? (uint64_t)(fraction.at[i] - '0') : 0);
    }
    *ret = number;
    return true;
}

static bool set_count(const struct value *value, void *ret, struct err *e) {
    uint64_t number;
    if (!str_to_u64(value->text, &number) || number > COUNT_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "'" STR_FMT "' is not a whole number up to %llu",
                       STR_ARG(str_head(value->text, 40)), (unsigned long long)COUNT_MAX);
    put_number(value->row, ret, number);
    return true;
}

static bool set_size(const struct value *value, void *ret, struct err *e) {
    uint64_t bytes;
    if (!units_size(value->text, &bytes, e)) return false;
    put_number(value->row, ret, bytes);
    return true;
}

static bool set_duration(const struct value *value, void *ret, struct err *e) {
    struct str text = str_equal(value->text, STR("off")) ? STR("0") : value->text;
    uint64_t us;
    if (!units_duration(text, &us, e)) return false;
    if (us % 1000 != 0)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "'" STR_FMT "' is not a whole number of "
                       "milliseconds",
                       STR_ARG(str_head(text, 40)));
    put_number(value->row, ret, us / 1000);
    return true;
}

/* A duration is counted in microseconds, and stored and bounded in milliseconds. */
static bool read_number(const struct value *value, void *ret, struct err *e) {
    uint64_t number, scale = value->type == YAML_DURATION ? 1000 : 1;
    if (!yaml_value(value->node, value->type, &number, e) ||
        !check_bounds(value, number, scale, e))
        return false;
    put_number(value->row, ret, number / scale);
    return true;
}

static bool set_rate(const struct value *value, void *ret, struct err *e) {
    return rate_limit_read(value->text, ret, e);
}

static bool take_decimal(const struct value *value, void *ret, struct err *e) {
    uint64_t scaled, scale = 1;
    struct err why;
    for (unsigned i = 0; i < value->row->digits; i++) scale *= 10;
    if (!read_decimal(value->text, value->row->digits, &scaled, &why))
        return kind_refuse(value, why.text, e);
    if (!check_bounds(value, scaled, scale, e)) return false;
    *(double *)ret = (double)scaled / (double)scale;
    return true;
}

static bool set_decimal(const struct value *value, void *ret, struct err *e) {
    if (!str_equal(value->text, STR("none"))) return take_decimal(value, ret, e);
    *(double *)ret = -1;
    return true;
}

static bool read_a_decimal(const struct value *value, void *ret, struct err *e) {
    if (value->node->kind == YAML_SCALAR) return take_decimal(value, ret, e);
    return yaml_err(e, value->node, "expected a decimal number");
}

bool config_dollars(const struct yaml *node, int64_t *ret, struct err *e) {
    struct err why;
    uint64_t nano = 0;
    if (node->kind != YAML_SCALAR) return yaml_err(e, node, "expected dollars, such as $1.50");
    struct str text = str_skip(node->text, str_starts(node->text, STR("$")));
    if (!read_decimal(text, NANO_DIGITS, &nano, &why))
        return yaml_err(e, node, "%s; write dollars such as $1.50", why.text);
    *ret = (int64_t)nano; /* cannot overflow: nine digits before the point */
    return true;
}

static bool read_dollars(const struct value *value, void *ret, struct err *e) {
    int64_t nano = 0;
    if (!config_dollars(value->node, &nano, e) || !check_bounds(value, (uint64_t)nano, 1, e))
        return false;
    *(int64_t *)ret = nano;
    return true;
}

/* --- text -------------------------------------------------------------------------------- */

static bool kind_keep(struct str text, struct config *config, void *ret, struct err *e) {
    if (arena_str(config->arena, text, ret)) return true;
    return err_set(e, ERR_TOO_LARGE, "there is too much of it");
}

static bool has_control(struct str text) {
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.at[i];
        if (byte < 0x20 || byte == 0x7F) return true;
    }
    return false;
}

static bool keep_text(struct str text, struct config *config, void *ret, struct err *e) {
    if (text.len == 0) return err_set(e, ERR_INVALID_ARGUMENT, "it is empty; give it a value");
    if (has_control(text))
        return err_set(e, ERR_INVALID_ARGUMENT, "it holds a control character; remove it");
    return kind_keep(text, config, ret, e);
}

static bool set_text(const struct value *value, void *ret, struct err *e) {
    return keep_text(value->text, value->config, ret, e);
}

static bool set_prose(const struct value *value, void *ret, struct err *e) {
    if (str_trim(value->text).len == 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "it is empty; give it a value");
    return kind_keep(value->text, value->config, ret, e);
}

/* The secret was checked when it was read. */
static bool set_secret(const struct value *value, void *ret, struct err *e) {
    return kind_keep(value->text, value->config, ret, e);
}

static bool set_id(const struct value *value, void *ret, struct err *e) {
    struct str text = value->text;
    if (str_find_byte(text, ':') < text.len || str_find_byte(text, ' ') < text.len)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "'" STR_FMT "' is not an id: ':' and spaces cannot stand in a token",
                       STR_ARG(str_head(text, 80)));
    if (text.len && !id_check("an id", text, e)) return false;
    return set_text(value, ret, e);
}

/* The URL must not contain a password, because settings are shown and logged. */
static bool set_url(const struct value *value, void *ret, struct err *e) {
    struct str text = value->text;
    bool web = str_starts(text, STR("http://")) || str_starts(text, STR("https://"));
    size_t host = str_find(text, STR("://")) + 3;
    if (!web || host >= text.len || str_find_byte(text, ' ') < text.len)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "it is no URL; write it like http://orchestrator:7171/mcp/v1");
    if (str_find_byte(text, '@') < text.len)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "it names a user or a password; leave everything up to '@' out");
    return set_text(value, ret, e);
}

static bool read_path(const struct value *value, void *ret, struct err *e) {
    struct str path;
    struct buf room;
    if (!yaml_value(value->node, YAML_TEXT, &path, e)) return false;
    buf_init(&room, 64 * KIB);
    path = config_from_folder(value->config, path, &room);
    bool kept = arena_str(value->config->arena, path, ret);
    buf_done(&room);
    return kept || config_too_large(value->node, e);
}

/* Read the file that the node names. */
static bool read_contents(const struct value *value, void *ret, struct err *e) {
    struct err why;
    struct str path;
    if (!yaml_value(value->node, YAML_TEXT, &path, e)) return false;
    struct buf room, text;
    buf_init(&room, 64 * KIB);
    buf_init(&text, CONTENTS_MAX_BYTES);
    bool read = file_read(config_from_folder(value->config, path, &room), &text, &why);
    bool done = read && arena_str(value->config->arena, buf_str(&text), ret);
    buf_done(&room);
    buf_done(&text);
    if (!read) return yaml_err(e, value->node, "%s", why.text);
    return done || config_too_large(value->node, e);
}

/* --- addresses ---------------------------------------------------------------------------- */

static bool refuse_address(struct str text, const char *why, struct err *e) {
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "'" STR_FMT "' %s; write host:port, [v6]:port, unix:/path or off",
                   STR_ARG(str_head(text, 80)), why);
}

static bool is_host(struct str host) {
    bool brackets = str_starts(host, STR("[")) && str_ends(host, STR("]"));
    if (brackets) host = str_skip(str_head(host, host.len - 1), 1);
    if (brackets && host.len == 0) return false;
    return str_is_plain(host, brackets ? ".-_:%" : ".-_");
}

static bool set_unix(const struct value *value, void *ret, struct err *e) {
    size_t path_len = str_skip(value->text, 5).len;
    if (path_len == 0 || path_len >= sizeof(((struct sockaddr_un *)0)->sun_path))
        return refuse_address(value->text, "has a path that is empty or too long for a socket",
                              e);
    return set_text(value, ret, e);
}

static bool set_address(const struct value *value, void *ret, struct err *e) {
    struct str text = value->text;
    if (str_equal(text, STR("off"))) return kind_keep(STR_EMPTY, value->config, ret, e);
    if (str_starts(text, STR("unix:"))) return set_unix(value, ret, e);

    size_t colon = text.len;
    while (colon > 0 && text.at[colon - 1] != ':') colon--;
    if (colon == 0) return refuse_address(text, "has no port", e);
    struct str host = str_head(text, colon - 1), port = str_skip(text, colon);
    uint64_t number;
    if (port.len > 5 || !str_to_u64(port, &number) || number > 65535)
        return refuse_address(text, "has no port from 0 to 65535", e);
    if (!is_host(host)) return refuse_address(text, "names no host", e);
    return kind_keep(text, value->config, ret, e);
}

/* --- lists as one text -------------------------------------------------------------------- */

/* An entry must be a valid word. */
static bool check_word(struct str word, struct err *e) {
    const struct yes_no_words as_yes = {.yes = {&word, 1}}, as_no = {.no = {&word, 1}};
    if (yes_no_read(word, &as_yes) != YES_NO_NEITHER ||
        yes_no_read(word, &as_no) != YES_NO_NEITHER)
        return true;
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "'" STR_FMT "' cannot be a decision: it is empty, longer than %d bytes, or "
                   "has a sentence's end in its middle",
                   STR_ARG(str_head(word, 40)), YES_NO_MAX_BYTES);
}

typedef bool check_entry_fn(struct str entry, struct err *e);

/* Split a text at ';' and check each entry. */
static bool set_list(const struct value *value, check_entry_fn *check, const struct str **ret,
                     size_t *ret_count, struct err *e) {
    struct config *config = value->config;
    struct str kept, words[SETTING_WORDS_MAX];
    size_t count = 0;
    if (!kind_keep(value->text, config, &kept, e)) return false;
    while (kept.len) {
        struct str word = str_trim(str_split(kept, ';', &kept));
        if (!check(word, e)) return false;
        if (count == SETTING_WORDS_MAX)
            return err_set(e, ERR_TOO_LARGE, "more than %d words", SETTING_WORDS_MAX);
        words[count++] = word;
    }
    size_t size = count * sizeof(struct str);
    struct str *entries = count ? arena_alloc(config->arena, size) : NULL;
    if (count && !entries) return err_set(e, ERR_TOO_LARGE, "there is too much of it");
    if (entries) memcpy(entries, words, size);
    *ret = entries;
    *ret_count = count;
    return true;
}

static bool set_words(const struct value *value, void *ret, struct err *e) {
    struct yes_no_list *list = ret;
    return set_list(value, check_word, &list->entries, &list->count, e);
}

static bool check_host(struct str host, struct err *e) {
    if (page_host_ok(host)) return true;
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "'" STR_FMT
                   "' is not a host name; write it like agent.example, without a port",
                   STR_ARG(str_head(host, 80)));
}

static bool set_hosts(const struct value *value, void *ret, struct err *e) {
    struct page_list *list = ret;
    return set_list(value, check_host, &list->entries, &list->count, e);
}

static bool check_origin(struct str origin, struct err *e) {
    if (page_origin_ok(origin)) return true;
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "'" STR_FMT "' is not an origin; write it like https://studio.example or "
                   "http://localhost:5173, without a path",
                   STR_ARG(str_head(origin, 80)));
}

static bool set_origins(const struct value *value, void *ret, struct err *e) {
    struct page_list *list = ret;
    return set_list(value, check_origin, &list->entries, &list->count, e);
}

/* --- words -------------------------------------------------------------------------------- */

static bool set_bool(const struct value *value, void *ret, struct err *e) {
    static const char *const words[2][5] = {{"false", "0", "off", "no", "f"},
                                            {"true", "1", "on", "yes", "t"}};
    for (size_t i = 0; i < ARRAY_LEN(words[0]); i++) {
        for (int is = 0; is <= 1; is++) {
            if (!str_equal_nocase(value->text, str_from(words[is][i]))) continue;
            *(bool *)ret = is;
            return true;
        }
    }
    return err_set(e, ERR_INVALID_ARGUMENT, "'" STR_FMT "' is neither true nor false",
                   STR_ARG(str_head(value->text, 40)));
}

static bool set_leaving(const struct value *value, void *ret, struct err *e) {
    return leaving_parse(value->text, ret, e);
}

static bool set_choice(const struct value *value, void *ret, struct err *e) {
    const struct setting *setting = value->row;
    struct str text = value->text;
    for (unsigned i = 0; setting->choices[i]; i++) {
        if (!str_equal(text, str_from(setting->choices[i]))) continue;
        put_number(setting, ret, i); /* an enum counts from 0, like its names */
        return true;
    }
    struct str meant = nearest_name(text, setting->choices);
    if (meant.len)
        return err_set(e, ERR_INVALID_ARGUMENT, "'" STR_FMT "'; did you mean '" STR_FMT "'?",
                       STR_ARG(str_head(text, 40)), STR_ARG(meant));
    return err_set(e, ERR_INVALID_ARGUMENT, "'" STR_FMT "' is not one of: %s",
                   STR_ARG(str_head(text, 40)), setting->help);
}

bool config_choice(const struct yaml *node, const char *const *choices, unsigned *ret,
                   struct err *e) {
    char all[256] = "";
    struct nearest nearest;
    nearest_init(&nearest, node->text);
    for (unsigned i = 0; choices[i]; i++) {
        if (node->kind == YAML_SCALAR && str_equal(node->text, str_from(choices[i]))) {
            *ret = i;
            return true;
        }
        nearest_offer(&nearest, str_from(choices[i]));
        size_t used = strlen(all);
        snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "", choices[i]);
    }
    return yaml_err(e, node, "'" STR_FMT "' is not one of: %s%s",
                    STR_ARG(str_head(node->text, 40)), all, nearest_hint(&nearest));
}

static bool read_choice(const struct value *value, void *ret, struct err *e) {
    unsigned choice = 0;
    if (!config_choice(value->node, value->row->choices, &choice, e)) return false;
    put_number(value->row, ret, choice);
    return true;
}

static bool read_word(const struct value *value, void *ret, struct err *e) {
    unsigned choice = 0;
    if (!config_choice(value->node, value->row->choices, &choice, e)) return false;
    *(struct str *)ret = str_from(value->row->choices[choice]);
    return true;
}

/* --- the kinds ---------------------------------------------------------------------------- */

/* A kind without `read` uses yaml_value(). */
static const struct {
    const char *placeholder;
    read_fn *set;        /* from a text */
    read_fn *read;       /* from a node in an entry */
    enum yaml_type type; /* of that node */
} kinds[SETTING_KINDS] = {
    [SETTING_NONE] = {.placeholder = ""},
    [SETTING_UNUSED] = {.placeholder = ""},
    [SETTING_TEXT] = {.placeholder = "TEXT", .set = set_text},
    [SETTING_PROSE] = {.placeholder = "TEXT", .set = set_prose},
    [SETTING_NAME] = {.placeholder = "NAME", .type = YAML_NAME},
    [SETTING_ID] = {.placeholder = "ID", .set = set_id},
    [SETTING_PATH] = {.placeholder = "PATH", .set = set_text, .read = read_path},
    [SETTING_CONTENTS] = {.placeholder = "PATH", .read = read_contents},
    [SETTING_URL] = {.placeholder = "URL", .set = set_url},
    [SETTING_ADDRESS] = {.placeholder = "ADDR", .set = set_address},
    [SETTING_SECRET] = {.placeholder = "", .set = set_secret},
    [SETTING_WORD] = {.read = read_word},
    [SETTING_JSON] = {.placeholder = "MAP", .type = YAML_JSON},
    [SETTING_BOOL] = {.placeholder = "", .set = set_bool, .type = YAML_BOOL},
    [SETTING_CHOICE] = {.placeholder = "WORD", .set = set_choice, .read = read_choice},
    [SETTING_COUNT] = {.placeholder = "N",
                       .set = set_count,
                       .read = read_number,
                       .type = YAML_COUNT},
    [SETTING_SIZE] = {.placeholder = "SIZE",
                      .set = set_size,
                      .read = read_number,
                      .type = YAML_SIZE},
    [SETTING_DURATION] = {.placeholder = "TIME",
                          .set = set_duration,
                          .read = read_number,
                          .type = YAML_DURATION},
    [SETTING_RATE] = {.placeholder = "RATE", .set = set_rate},
    [SETTING_DECIMAL] = {.placeholder = "0-2", .set = set_decimal, .read = read_a_decimal},
    [SETTING_DOLLARS] = {.placeholder = "DOLLARS", .read = read_dollars},
    [SETTING_LEAVING] = {.placeholder = "HOW", .set = set_leaving},
    [SETTING_WORDS] = {.placeholder = "WORDS", .set = set_words},
    [SETTING_HOSTS] = {.placeholder = "NAMES", .set = set_hosts},
    [SETTING_ORIGINS] = {.placeholder = "ORIGINS", .set = set_origins},
    [SETTING_NODE] = {.placeholder = "TEXT", .type = YAML_NODE},
};

bool setting_set(const struct setting *setting, struct str text, struct config *config,
                 struct err *e) {
    const struct value value = {.row = setting, .config = config, .text = text};
    return kinds[setting->kind].set(&value, (char *)config + setting->offset, e);
}

bool setting_read(const struct setting *setting, const struct reading *reading,
                  const struct yaml *node, struct err *e) {
    enum yaml_type type = kinds[setting->kind].type;
    const struct value value = {setting, reading->config, node->text, node, type};
    void *at = (char *)reading->entry + setting->offset;
    read_fn *read = kinds[setting->kind].read;
    return read ? read(&value, at, e) : yaml_value(node, type, at, e);
}

const char *setting_placeholder(const struct setting *setting) {
    return kinds[setting->kind].placeholder;
}

bool setting_is_text(const struct setting *setting) {
    return setting->width == sizeof(struct str) && setting->kind >= SETTING_TEXT &&
           setting->kind <= SETTING_JSON;
}

/* --- value to text ------------------------------------------------------------------------ */

static void append_text(const struct setting *setting, struct str text, struct buf *out) {
    if (setting->kind == SETTING_SECRET) {
        buf_append(out, text.len ? STR("set") : STR("not set"));
    } else if (!text.len) {
        buf_append(out, setting->kind == SETTING_ADDRESS ? STR("off") : STR("none"));
    } else if (setting->kind == SETTING_PROSE) {
        json_put_str(out, text); /* on one line */
    } else {
        buf_append(out, text);
    }
}

static void append_list(const struct str *entries, size_t count, struct buf *out) {
    if (count == 0) buf_append(out, STR("none"));
    for (size_t i = 0; i < count; i++) {
        if (i) buf_append(out, STR("; "));
        buf_append(out, entries[i]);
    }
}

static void append_decimal(double number, struct buf *out) {
    if (number < 0) {
        buf_append(out, STR("none"));
    } else {
        buf_printf(out, "%.6g", number);
    }
}

void setting_append(const struct setting *setting, const void *entry, struct buf *out) {
    const void *at = (const char *)entry + setting->offset;
    const struct yes_no_list *words = at;
    const struct page_list *names = at;
    if (setting_is_text(setting)) return append_text(setting, *(const struct str *)at, out);
    switch (setting->kind) {
    case SETTING_BOOL: buf_append(out, *(const bool *)at ? STR("true") : STR("false")); break;
    case SETTING_CHOICE:
        buf_append(out, str_from(setting->choices[setting_number(setting, entry)]));
        break;
    case SETTING_COUNT: buf_append_u64(out, setting_number(setting, entry)); break;
    case SETTING_SIZE: units_append_size(out, setting_number(setting, entry)); break;
    case SETTING_DURATION:
        units_append_duration(out, setting_number(setting, entry) * 1000);
        break;
    case SETTING_RATE: rate_limit_append(out, *(const struct rate_limit *)at); break;
    case SETTING_LEAVING: leaving_append(*(const struct leaving *)at, out); break;
    case SETTING_DECIMAL: append_decimal(*(const double *)at, out); break;
    case SETTING_WORDS: append_list(words->entries, words->count, out); break;
    case SETTING_HOSTS:
    case SETTING_ORIGINS: append_list(names->entries, names->count, out); break;
    default: break; /* only in entries, which show.c writes */
    }
}
