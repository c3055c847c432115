#include "tool/tool_output.h"

#include "tool/secret_match.h"
#include "wire/json.h"

#define SPELLINGS 3
#define SPELLING_MAX_BYTES (64 * KIB)

/* --- the result --------------------------------------------------------------------------- */

static void tool_output_write_text(struct str text, struct buf *out) {
    struct json_writer w = json_writer(out);
    while (text.len && (text.at[text.len - 1] == '\n' || text.at[text.len - 1] == '\r'))
        text.len--;
    json_open_object(&w);
    json_member_str(&w, "output", text); /* repairs invalid UTF-8 */
    json_close(&w);
}

static void write_json(struct json value, struct str pick, struct buf *out) {
    struct json member = pick.len ? json_find(value, pick) : (struct json){.kind = JSON_NONE};
    buf_append(out, STR("{\"output\":"));
    json_compact(member.kind == JSON_NONE ? value.raw : member.raw, out);
    buf_append_byte(out, '}');
}

/* One level less than the result's reader allows. */
static bool reads_as_json(struct str bytes, struct json *ret, struct err *e) {
    return json_read_depth(bytes, JSON_DEPTH_MAX - 1, ret, e);
}

bool tool_output_write(struct str bytes, enum tool_output_form form, struct str pick,
                       struct buf *out, struct err *e) {
    struct json value;
    struct err why;
    bool is_json = form != TOOL_OUTPUT_TEXT && reads_as_json(bytes, &value, &why);
    if (form == TOOL_OUTPUT_JSON && !is_json)
        return err_set(e, ERR_EFFECT_UNKNOWN, "its answer is no JSON: %s", why.text);
    if (is_json) {
        write_json(value, pick, out);
    } else {
        tool_output_write_text(bytes, out);
    }
    return buf_ok(out) || err_set(e, ERR_EFFECT_UNKNOWN, "its answer is too long");
}

/* --- secrets ------------------------------------------------------------------------------ */

/* The spellings to search for: plain, in a URL, and in a JSON string without its quotes. */
static void spell(struct str value, struct buf spellings[SPELLINGS]) {
    for (size_t i = 0; i < SPELLINGS; i++) buf_init(&spellings[i], SPELLING_MAX_BYTES);
    buf_append(&spellings[0], value);
    buf_append_percent(&spellings[1], value, "-._~");
    json_put_str(&spellings[2], value);
}

static struct str spelling(const struct buf spellings[SPELLINGS], size_t which) {
    struct str text = buf_str(&spellings[which]);
    return which == 2 ? str_skip(str_head(text, text.len - 1), 1) : text;
}

static void hide_one(struct str text, struct str secret, struct buf *out) {
    size_t at;
    while ((at = str_find(text, secret)) < text.len) {
        buf_append(out, str_head(text, at));
        buf_append(out, STR("***"));
        text = str_skip(text, at + secret.len);
    }
    buf_append(out, text);
}

/* Where the secret is spelled character by character, as it may be where there are escapes. */
static void hide_spelled(struct str text, struct str secret, struct buf *out) {
    bool escapes = str_find_byte(text, '\\') < text.len || str_find_byte(text, '%') < text.len;
    for (size_t at = 0; escapes && at < text.len; at++) {
        char c = text.at[at];
        if (c != secret.at[0] && c != '\\' && c != '%') continue;
        size_t len = secret_match(str_skip(text, at), secret);
        if (!len) continue;
        buf_append(out, str_head(text, at));
        buf_append(out, STR("***"));
        text = str_skip(text, at + len);
        at = SIZE_MAX; /* on from the start of the rest */
    }
    buf_append(out, text);
}

static void swap(struct buf *a, struct buf *b) {
    struct buf was = *a;
    *a = *b;
    *b = was;
}

/* Each pass reads the output of the previous one. */
void tool_output_hide(struct str text, const struct tool_secret *secrets, size_t count,
                      struct buf *out) {
    struct buf now, next, spellings[SPELLINGS];
    buf_init(&now, SIZE_MAX);
    buf_init(&next, SIZE_MAX);
    buf_append(&now, text);
    for (size_t i = 0; i < count; i++) {
        if (secrets[i].value.len < TOOL_SECRET_MIN_BYTES) continue;
        spell(secrets[i].value, spellings);
        for (size_t s = 0; s < SPELLINGS; s++) {
            if (s && str_equal(spelling(spellings, s), spelling(spellings, 0))) continue;
            buf_clear(&next);
            hide_one(buf_str(&now), spelling(spellings, s), &next);
            swap(&now, &next);
        }
        buf_clear(&next);
        hide_spelled(buf_str(&now), secrets[i].value, &next);
        swap(&now, &next);
        for (size_t s = 0; s < SPELLINGS; s++) buf_done(&spellings[s]);
    }
    buf_append(out, buf_str(&now));
    buf_done(&now);
    buf_done(&next);
}
