#include "conversation/effect.h"

#include "base/utf8.h"
#include "wire/json.h"

#define CAUSE_MAX_BYTES 256

static const struct {
    const char *name; /* the value of "effect" */
    const char *words;
} effects[] = {
    [EFFECT_NONE] = {"none", "this call was not made"},
    [EFFECT_HARMLESS] = {"harmless", "its answer is lost; it may be made again"},
    [EFFECT_UNKNOWN] = {"unknown", "it may or may not have had its effect. Find out before you "
                                   "call it again"},
};

void effect_write(enum effect effect, struct str cause, struct buf *out, struct err *ret) {
    struct json_writer json = json_writer(out);
    char room[3 * CAUSE_MAX_BYTES]; /* U+FFFD is three bytes */
    struct buf whole = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    /* Repaired before the words are added: it may become longer, and they must all be there. */
    utf8_append_repaired(&whole, str_head(cause, utf8_cut(cause, CAUSE_MAX_BYTES)));
    cause = str_head(buf_str(&whole), utf8_cut(buf_str(&whole), CAUSE_MAX_BYTES));
    err_set(ret, ERR_EFFECT_UNKNOWN, STR_FMT ": %s", STR_ARG(cause), effects[effect].words);
    json_open_object(&json);
    json_member_str(&json, "effect", str_from(effects[effect].name));
    json_member_str(&json, "error", err_text(ret));
    json_close(&json);
}
