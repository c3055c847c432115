#include "guardrail/guardrail.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "guardrail/compiled.h"

#include <stdlib.h>

#define PATTERN_MAX_BYTES (8 * KIB)
#define NESTING_MAX 100   /* nested parentheses */
#define BEHIND_MAX 255    /* characters that a look-behind may see */
#define CHARACTER_BYTES 4 /* UTF-8 bytes per character, at most */

/* --- refused pattern features ------------------------------------------------------------- */

static bool guardrail_refuse(const char *what, struct err *e) {
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "%s depends on where a search begins, which a stream does not have; "
                   "leave it out",
                   what);
}

/* Verbs are refused in character classes and comments too; "(*" can be written "[*(]" or "\\(*"
 * there. */
static bool check_pattern(struct str rest, struct err *e) {
    while (rest.len) {
        if (str_starts(rest, STR("\\G"))) return guardrail_refuse("\\G", e);
        if (str_starts(rest, STR("\\K"))) return guardrail_refuse("\\K", e);
        if (str_starts(rest, STR("(*"))) return guardrail_refuse("a verb, '(*...)',", e);
        rest = str_skip(rest, rest.at[0] == '\\' ? 2 : 1);
    }
    return true;
}

/* --- keywords ------------------------------------------------------------------------------- */

static void append_literal(struct buf *out, struct str word) {
    for (size_t i = 0; i < word.len; i++) {
        unsigned char c = (unsigned char)word.at[i];
        bool plain = c >= 0x80 || c < 0x20 || str_is_alnum((char)c);
        if (!plain) buf_append_byte(out, '\\');
        buf_append_byte(out, (char)c);
    }
}

/* Longer words first, so that "passwords" is found whole and not as "password". */
static int by_length(const void *left, const void *right) {
    const struct str *a = left, *b = right;
    if (a->len != b->len) return a->len < b->len ? 1 : -1;
    return memcmp(a->at, b->at, a->len);
}

static bool append_keywords(struct str list, struct buf *out, struct err *e) {
    size_t count = 0;
    struct str *words = mem_zero(list.len / 2 + 1, sizeof(*words));
    for (struct str rest = list; rest.at;) {
        struct str word = str_trim(str_split(rest, ',', &rest));
        if (word.len) words[count++] = word;
    }
    qsort(words, count, sizeof(*words), by_length);
    for (size_t i = 0; i < count; i++) {
        if (i) buf_append_byte(out, '|');
        append_literal(out, words[i]);
    }
    free(words);
    return count ||
           err_set(e, ERR_INVALID_ARGUMENT, "a keyword rule needs at least one keyword");
}

/* --- compiling ------------------------------------------------------------------------------ */

static pcre2_code *compile(struct str text, uint32_t more, int *ret_code, size_t *ret_at) {
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(context, NESTING_MAX);
    uint32_t options = PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C |
                       PCRE2_NO_DOTSTAR_ANCHOR | more;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)text.at, text.len, options, ret_code, ret_at, context);
    pcre2_compile_context_free(context);
    return code;
}

static bool compile_text(struct str text, uint32_t more, pcre2_code **ret, struct err *e) {
    int code;
    size_t at;
    *ret = compile(text, more, &code, &at);
    if (*ret) return true;
    unsigned char why[128] = "";
    pcre2_get_error_message(code, why, sizeof(why));
    return err_set(e, ERR_INVALID_ARGUMENT, "the pattern is wrong at byte %zu: %s", at,
                   (const char *)why);
}

static bool compile_rule(const struct guardrail_rule *rule, pcre2_code **ret, struct err *e) {
    if (rule->pattern.len == 0) return err_set(e, ERR_INVALID_ARGUMENT, "the pattern is empty");
    if (rule->pattern.len > PATTERN_MAX_BYTES)
        return err_set(e, ERR_INVALID_ARGUMENT, "the pattern is longer than %zu bytes",
                       (size_t)PATTERN_MAX_BYTES);
    if (rule->kind == GUARDRAIL_REGEX)
        return check_pattern(rule->pattern, e) && compile_text(rule->pattern, 0, ret, e);
    struct buf text;
    buf_init(&text, 3 * PATTERN_MAX_BYTES);
    bool compiled = append_keywords(rule->pattern, &text, e) &&
                    compile_text(buf_str(&text), PCRE2_CASELESS, ret, e);
    buf_done(&text);
    return compiled;
}

/* One character more than the look-behind can see, because `^` at its far end checks that
 * one. */
static bool measure_behind(struct guardrail *guardrail, struct err *e) {
    uint32_t lookbehind = 0;
    pcre2_pattern_info(guardrail->code, PCRE2_INFO_MAXLOOKBEHIND, &lookbehind);
    guardrail->behind_bytes = CHARACTER_BYTES * ((size_t)lookbehind + 1);
    return lookbehind <= BEHIND_MAX ||
           err_set(e, ERR_INVALID_ARGUMENT, "the pattern looks back more than %d characters",
                   BEHIND_MAX);
}

/* --- replacements --------------------------------------------------------------------------- */

static bool is_name_byte(char c) {
    return str_is_alnum(c) || c == '_';
}

/* The group name after a '$', without braces; `ret_rest` is the text after it. Empty: no
 * name. */
static struct str group_name(struct str text, struct str *ret_rest) {
    bool braced = str_starts(text, STR("{"));
    struct str name = str_skip(text, braced);
    size_t len = 0;
    while (len < name.len && is_name_byte(name.at[len])) len++;
    bool whole = len && (!braced || (len < name.len && name.at[len] == '}'));
    *ret_rest = whole ? str_skip(name, len + braced) : text;
    return whole ? str_head(name, len) : STR_EMPTY;
}

/* The number of a group, or -1. */
static int group_number(const pcre2_code *code, struct str name) {
    uint64_t number;
    uint32_t count = 0;
    unsigned char room[33];
    pcre2_pattern_info(code, PCRE2_INFO_CAPTURECOUNT, &count);
    if (str_to_u64(name, &number)) return number <= count ? (int)number : -1;
    if (name.len >= sizeof(room)) return -1;
    memcpy(room, name.at, name.len);
    room[name.len] = '\0';
    int found = pcre2_substring_number_from_name(code, room);
    return found > 0 ? found : -1;
}

static bool check_replacement(const struct guardrail *guardrail, struct err *e) {
    struct str rest = buf_str(&guardrail->replacement);
    while (rest.len) {
        rest = str_skip(rest, str_find_byte(rest, '$'));
        rest = str_skip(rest, 1);
        if (str_starts(rest, STR("$"))) {
            rest = str_skip(rest, 1);
            continue;
        }
        struct str name = group_name(rest, &rest);
        if (name.len && group_number(guardrail->code, name) < 0)
            return err_set(e, ERR_INVALID_ARGUMENT,
                           "the replacement names the group '" STR_FMT
                           "', and the pattern has no such group; write $$ for a dollar sign",
                           STR_ARG(str_head(name, 40)));
    }
    return true;
}

void guardrail_replace(const struct guardrail *guardrail, struct str subject,
                       const size_t *groups, size_t count, struct buf *out) {
    struct str rest = buf_str(&guardrail->replacement);
    while (rest.len) {
        size_t plain = str_find_byte(rest, '$');
        buf_append(out, str_head(rest, plain));
        if (plain == rest.len) return;
        rest = str_skip(rest, plain + 1);
        struct str name = str_starts(rest, STR("$")) ? STR_EMPTY : group_name(rest, &rest);
        if (!name.len) {
            buf_append_byte(out, '$');
            rest = str_skip(rest, str_starts(rest, STR("$")));
            continue;
        }
        size_t group = (size_t)group_number(guardrail->code, name);
        if (group >= count || groups[2 * group] == PCRE2_UNSET) continue;
        size_t from = groups[2 * group], to = groups[2 * group + 1];
        if (to > from) buf_append(out, str_of(subject.at + from, to - from));
    }
}

/* ISO/IEC 7812-1 annex B. */
static bool has_check_digit(struct str match) {
    unsigned sum = 0;
    bool twice = false;
    for (size_t i = match.len; i > 0; i--) {
        char c = match.at[i - 1];
        if (c < '0' || c > '9') continue;
        unsigned digit = (unsigned)(c - '0') << twice;
        sum += digit > 9 ? digit - 9 : digit;
        twice = !twice;
    }
    return sum % 10 == 0;
}

bool guardrail_accepts(const struct guardrail *guardrail, struct str match) {
    return !guardrail->luhn || has_check_digit(match);
}

/* --- creation and release ----------------------------------------------------------------- */

static bool guardrail_fill(struct guardrail *guardrail, const struct guardrail_rule *rule,
                           struct err *e) {
    struct str replacement =
        rule->replacement.at ? rule->replacement : STR(GUARDRAIL_REPLACEMENT);
    guardrail->action = rule->action;
    guardrail->luhn = rule->luhn;
    if (!utf8_valid(replacement))
        return err_set(e, ERR_INVALID_ARGUMENT, "the replacement is not UTF-8");
    if (!buf_append(&guardrail->name, rule->name) ||
        !buf_append(&guardrail->replacement, replacement))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "a name or a replacement is longer than %zu bytes", (size_t)KIB);
    return compile_rule(rule, &guardrail->code, e) && measure_behind(guardrail, e) &&
           check_replacement(guardrail, e);
}

bool guardrail_new(const struct guardrail_rule *rule, struct guardrail **ret, struct err *e) {
    struct guardrail *guardrail = MEM_NEW(struct guardrail);
    buf_init(&guardrail->name, KIB);
    buf_init(&guardrail->replacement, KIB);
    if (!guardrail_fill(guardrail, rule, e)) {
        guardrail_free(guardrail);
        return false;
    }
    *ret = guardrail;
    return true;
}

void guardrail_free(struct guardrail *guardrail) {
    if (!guardrail) return;
    pcre2_code_free(guardrail->code);
    buf_done(&guardrail->name);
    buf_done(&guardrail->replacement);
    free(guardrail);
}

struct str guardrail_name(const struct guardrail *guardrail) {
    return buf_str(&guardrail->name);
}

struct guardrail_counts guardrail_counts(const struct guardrail *guardrail) {
    return (struct guardrail_counts){
        .matches = atomic_load_explicit(&guardrail->matches, memory_order_relaxed),
        .undecided = atomic_load_explicit(&guardrail->undecided, memory_order_relaxed)};
}
