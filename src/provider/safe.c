/* Quotes foreign text inside our own error messages.
 *
 * A vendor's error text ends up in logs, in events and on the caller's screen. It may contain
 * control characters, a page of HTML, or the key that was sent with the request.
 * reply_append_safe() hides anything that looks like a key, reply_hide() the actual one. */
#include "provider/dialect.h"

#include "base/secret.h"
#include "base/utf8.h"

#define ELLIPSIS STR("...")

/* In "abc***xyz" or "abc...xyz" the middle was masked; the rest is still secret. */
static bool is_blotted(struct str run) {
    return str_find(run, STR("**")) < run.len || str_find(run, ELLIPSIS) < run.len;
}

/* `text` must begin where a word may begin. */
static struct secret_piece word(struct str text) {
    struct secret_piece piece = secret_at(text);
    if (piece.shown + piece.hidden) return piece;
    size_t run = secret_run(text);
    return (struct secret_piece){0, is_blotted(str_head(text, run)) ? run : 0};
}

/* Length of the control character at the start of `text` (C0, DEL, C1 in UTF-8), or 0. */
static size_t control(struct str text) {
    unsigned char c = (unsigned char)text.at[0];
    if (c < 0x20 || c == 0x7F) return 1;
    if (c != 0xC2 || text.len < 2) return 0;
    return (unsigned char)text.at[1] < 0xA0 ? 2 : 0;
}

/* Write `text` as one line without secrets; cut at the limit of `out`. */
static void clean(struct str text, struct buf *out) {
    bool inside = false; /* a word: the previous byte belongs to one */
    while (text.len && buf_ok(out)) {
        size_t gap = text.at[0] == ' ' ? 1 : control(text);
        if (gap) {
            if (out->len && out->at[out->len - 1] != ' ') buf_append_byte(out, ' ');
            text = str_skip(text, gap);
            inside = false;
            continue;
        }
        bool plain = str_is_alnum(text.at[0]);
        struct secret_piece piece = plain && inside ? (struct secret_piece){1, 0} : word(text);
        if (piece.shown + piece.hidden == 0) piece.shown = 1;
        inside = plain && piece.shown == 1;
        buf_append(out, str_head(text, piece.shown));
        if (piece.hidden) buf_append(out, SECRET_HIDDEN);
        text = str_skip(text, piece.shown + piece.hidden);
    }
}

void reply_append_safe(struct buf *out, struct str text, size_t max_bytes) {
    struct buf valid, line;
    /* The rest is cut anyway. The margin is longer than a secret that begins in the part
     * shown. */
    struct str head = str_head(text, 2 * max_bytes + 256);
    buf_init(&valid, 3 * head.len);
    buf_init(&line, 2 * (3 * head.len) + SECRET_HIDDEN.len);
    utf8_append_repaired(&valid, head);
    clean(buf_str(&valid), &line);
    struct str whole = str_trim(buf_str(&line));
    if (whole.len <= max_bytes) {
        buf_append(out, whole);
    } else {
        size_t room = max_bytes > ELLIPSIS.len ? max_bytes - ELLIPSIS.len : 0;
        buf_append(out, str_head(whole, utf8_cut(whole, room)));
        buf_append(out, str_head(ELLIPSIS, max_bytes));
    }
    buf_done(&valid);
    buf_done(&line);
}

void reply_hide(struct err *e, struct str key) {
    if (key.len < SECRET_PIECE_BYTES) return;
    struct err seen = *e;
    struct buf text;
    buf_init(&text, sizeof(e->text));
    for (struct str rest = err_text(&seen); rest.len;) {
        size_t len = secret_shared(rest, key);
        bool secret = len >= SECRET_PIECE_BYTES;
        buf_append(&text, secret ? SECRET_HIDDEN : str_head(rest, 1));
        rest = str_skip(rest, secret ? len : 1);
    }
    err_set(e, seen.code, STR_FMT, STR_ARG(buf_str(&text)));
    buf_done(&text);
}
