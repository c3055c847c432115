#include "schema/schema_pattern.h"

#include "base/mem.h"

#include <stdlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#define PATTERN_MAX_BYTES (8 * KIB)
#define NESTING_MAX 100     /* nested parentheses */
#define HEAP_MAX_KIB 16384u /* memory for backtracking */

/* One step of PCRE2 may scan the whole text (`.*`), so the limit is on the bytes a match may
 * scan. The number of steps is derived from it. */
#define WORK_BYTES UINT64_C(200000000)
#define STEP_BYTES 200u /* cost of a step in addition to the bytes it scans */

/* An unanchored pattern is tried at each byte, each time with all of its steps. */
static const struct {
    size_t text_max_bytes;
    uint64_t steps_min, steps_max;
} limits[] = {
    [false] = {16 * KIB, 20, 1000000}, [true] = {1 * MIB, 1000, 1000000}, /* begins with ^ */
};

struct schema_pattern {
    pcre2_code *code;
    bool anchored;
};

static pcre2_code *compile(struct str text, int *ret_code, size_t *ret_at) {
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    pcre2_set_newline(context, PCRE2_NEWLINE_ANYCRLF);
    pcre2_set_parens_nest_limit(context, NESTING_MAX);
    pcre2_set_compile_extra_options(context, PCRE2_EXTRA_ALT_BSUX);
    uint32_t options = PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_ALLOW_EMPTY_CLASS |
                       PCRE2_MATCH_UNSET_BACKREF | PCRE2_NEVER_BACKSLASH_C;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)text.at, text.len, options, ret_code, ret_at, context);
    pcre2_compile_context_free(context);
    return code;
}

bool schema_pattern_new(struct str text, struct schema_pattern **ret, struct err *e) {
    if (text.len > PATTERN_MAX_BYTES)
        return err_set(e, ERR_INVALID_ARGUMENT, "the pattern is longer than %zu bytes",
                       (size_t)PATTERN_MAX_BYTES);
    int code;
    size_t at;
    pcre2_code *compiled = compile(text, &code, &at);
    if (!compiled) {
        unsigned char why[128] = "";
        pcre2_get_error_message(code, why, sizeof(why));
        return err_set(e, ERR_INVALID_ARGUMENT, "the pattern is wrong at byte %zu: %s", at,
                       (const char *)why);
    }
    uint32_t options = 0;
    pcre2_pattern_info(compiled, PCRE2_INFO_ALLOPTIONS, &options);
    struct schema_pattern *pattern = MEM_NEW(struct schema_pattern);
    pattern->code = compiled;
    pattern->anchored = (options & PCRE2_ANCHORED) != 0;
    *ret = pattern;
    return true;
}

void schema_pattern_free(struct schema_pattern *pattern) {
    if (!pattern) return;
    pcre2_code_free(pattern->code);
    free(pattern);
}

static uint32_t steps_for(const struct schema_pattern *pattern, size_t len) {
    uint64_t steps = WORK_BYTES / (len + STEP_BYTES);
    if (!pattern->anchored) steps /= len + 1;
    uint64_t least = limits[pattern->anchored].steps_min;
    uint64_t most = limits[pattern->anchored].steps_max;
    if (steps < least) steps = least;
    return (uint32_t)(steps > most ? most : steps);
}

enum schema_match schema_pattern_match(const struct schema_pattern *pattern, struct str text) {
    if (text.len > limits[pattern->anchored].text_max_bytes) return SCHEMA_MATCH_TOO_HARD;

    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    pcre2_match_context *context = pcre2_match_context_create(NULL);
    uint32_t steps = steps_for(pattern, text.len);
    pcre2_set_match_limit(context, steps);
    pcre2_set_depth_limit(context, steps);
    pcre2_set_heap_limit(context, HEAP_MAX_KIB);
    int found = pcre2_match(pattern->code, (PCRE2_SPTR)(text.len ? text.at : ""), text.len, 0,
                            PCRE2_NO_UTF_CHECK, data, context);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
    if (found >= 0) return SCHEMA_MATCH;
    return found == PCRE2_ERROR_NOMATCH ? SCHEMA_NO_MATCH : SCHEMA_MATCH_TOO_HARD;
}
