#include "validate/judge.h"

#include "base/secret.h"
#include "base/utf8.h"

#include <assert.h>

bool judge_is_settled(const struct judge *judge) {
    return judge->finding->ended;
}

/* fail or warn, by the table in check.h. */
static enum verdict broken_verdict(const struct judge *judge) {
    const struct check *check = judge->finding->check;
    bool must = check->word == WORD_MUST || check->word == WORD_MUST_NOT;
    if (check->proxied && judge->options->behind_proxy) return VERDICT_WARN;
    switch (check->level) {
    case LEVEL_BASE: return check->word == WORD_SHOULD ? VERDICT_WARN : VERDICT_FAIL;
    case LEVEL_STRICT: return judge->options->strict ? VERDICT_FAIL : VERDICT_WARN;
    case LEVEL_ADVISORY: break;
    }
    return must ? VERDICT_FAIL : VERDICT_WARN;
}

/* It may quote the target. */
PRINTF_LIKE(2, 0)
static void put_why(struct judge *judge, const char *format, va_list values) {
    const struct str secrets[] = {judge->options->token, judge->options->signing_key};
    struct buf text;
    buf_init(&text, FINDING_WHY_MAX_BYTES);
    buf_vprintf(&text, format, values);
    evidence_append(&judge->finding->why, buf_str(&text), secrets, ARRAY_LEN(secrets));
    buf_done(&text);
}

PRINTF_LIKE(4, 0)
static void judge_settle(struct judge *judge, enum verdict verdict,
                         const struct evidence *evidence, const char *format, va_list values) {
    struct finding *finding = judge->finding;
    finding->verdict = verdict;
    buf_clear(&finding->why);
    buf_clear(&finding->sent);
    buf_clear(&finding->seen);
    put_why(judge, format, values);
    if (!evidence) return;
    buf_append(&finding->sent, str_head(evidence->sent, FINDING_SEEN_MAX_BYTES));
    buf_append(&finding->seen, str_head(evidence->seen, FINDING_SEEN_MAX_BYTES));
}

bool judge_break(struct judge *judge, const struct evidence *evidence, const char *format,
                 ...) {
    va_list values;
    if (judge->finding->ended) return false;
    va_start(values, format);
    judge_settle(judge, broken_verdict(judge), evidence, format, values);
    va_end(values);
    judge->finding->ended = true;
    return false;
}

/* A remark on a check of the strict level is as bad as a break of it. */
bool judge_warn(struct judge *judge, const struct evidence *evidence, const char *format, ...) {
    va_list values;
    if (judge->finding->ended || judge->finding->verdict == VERDICT_WARN) return true;
    bool strict = judge->finding->check->level == LEVEL_STRICT && judge->options->strict;
    va_start(values, format);
    judge_settle(judge, strict ? VERDICT_FAIL : VERDICT_WARN, evidence, format, values);
    va_end(values);
    return true;
}

bool judge_skip(struct judge *judge, const char *format, ...) {
    va_list values;
    if (judge->finding->ended) return false;
    va_start(values, format);
    judge_settle(judge, VERDICT_SKIP, NULL, format, values);
    va_end(values);
    judge->finding->ended = true;
    return false;
}

/* --- evidence ------------------------------------------------------------------------------ */

#define CUT_MARK STR(" ... (cut)")

static bool evidence_put_byte(struct buf *out, unsigned char byte) {
    if (byte == '\n' || byte == '\t' || (byte >= 0x20 && byte != 0x7f))
        return buf_append_byte(out, (char)byte);
    return byte == '\r' ? buf_append(out, STR("\\r")) : buf_printf(out, "\\x%02x", byte);
}

/* Bytes without a secret. */
static bool put_plain(struct buf *out, struct str bytes) {
    while (bytes.len) {
        size_t valid = utf8_valid_prefix(bytes), i = 0;
        for (; i < valid; i++) {
            /* U+0080 to U+009F: terminals may take them as commands. */
            bool control =
                (unsigned char)bytes.at[i] == 0xc2 && (unsigned char)bytes.at[i + 1] < 0xa0;
            bool put = control ? buf_printf(out, "\\xc2\\x%02x", (unsigned char)bytes.at[++i])
                               : evidence_put_byte(out, (unsigned char)bytes.at[i]);
            if (!put) return false;
        }
        bytes = str_skip(bytes, valid);
        if (bytes.len && !buf_printf(out, "\\x%02x", (unsigned char)bytes.at[0])) return false;
        bytes = str_skip(bytes, 1);
    }
    return true;
}

void evidence_append(struct buf *out, struct str bytes, const struct str *secrets,
                     size_t secret_count) {
    assert(out->max_bytes > CUT_MARK.len && out->len == 0);
    struct secret_span span;
    size_t at = 0;
    bool fits = true;
    out->max_bytes -= CUT_MARK.len;
    while (fits && secret_next(bytes, at, secrets, secret_count, &span)) {
        fits = put_plain(out, str_head(str_skip(bytes, at), span.from - at)) &&
               buf_append(out, SECRET_HIDDEN);
        at = span.to;
    }
    fits = fits && put_plain(out, str_skip(bytes, at));
    out->max_bytes += CUT_MARK.len;
    if (fits) return;
    out->full = false;
    buf_append(out, CUT_MARK);
}
