#include "contract/agentbreeder/acted.h"

#define ITEMS_MAX_BYTES (64 * KIB) /* each */
#define ARGS_MAX_BYTES (8 * KIB)
#define NAME_SHOWN_BYTES 80

static const char *const names[ACTED_EFFECT_COUNT] = {
    [ACTED_UNKNOWN] = "unknown", [ACTED_DONE] = "done", [ACTED_FAILED] = "failed"};

void acted_init(struct acted *acted) {
    *acted = (struct acted){0};
    buf_init(&acted->unknown.items, ITEMS_MAX_BYTES);
    buf_init(&acted->answered.items, ITEMS_MAX_BYTES);
}

static void acted_calls_done(struct acted_calls *calls) {
    buf_done(&calls->items);
    text_done(&calls->tool);
}

void acted_done(struct acted *acted) {
    acted_calls_done(&acted->unknown);
    acted_calls_done(&acted->answered);
}

/* An entry that does not fit is left out whole; half of one would not be JSON. */
void acted_add(struct acted *acted, struct str tool, struct str args,
               enum acted_effect effect) {
    struct acted_calls *calls = effect == ACTED_UNKNOWN ? &acted->unknown : &acted->answered;
    struct buf *items = &calls->items;
    if (calls->count++ == 0) calls->tool = text_copy(tool);
    if (!buf_ok(items)) return;
    size_t len = items->len;
    if (len) buf_append_byte(items, ',');
    struct json_writer json = json_writer(items);
    json_open_object(&json);
    json_member_str(&json, "name", tool);
    if (args.len <= ARGS_MAX_BYTES) json_member_raw(&json, "args", args);
    json_member_str(&json, "effect", str_from(names[effect]));
    json_close(&json);
    if (!buf_ok(items)) items->len = len;
}

/* "'pay'", "'pay' and 2 more". */
static void acted_name(const struct acted_calls *calls, struct buf *out) {
    struct str tool = str_head(text_str(calls->tool), NAME_SHOWN_BYTES);
    buf_printf(out, "'" STR_FMT "'", STR_ARG(tool));
    if (calls->count > 1) buf_printf(out, " and %zu more", calls->count - 1);
}

void acted_say(const struct acted *acted, struct str message, struct buf *out) {
    const struct acted_calls *unknown = &acted->unknown;
    buf_append(out, message);
    if (!acted_any(acted)) return;
    buf_append(out, STR("; it had called "));
    acted_name(unknown->count ? unknown : &acted->answered, out);
    if (unknown->count)
        buf_append(out, unknown->count == 1
                            ? STR(", which may or may not have had its effect")
                            : STR(", which may or may not have had their effect"));
    buf_append(out, STR(". Find out before you send this again"));
}

void acted_write(const struct acted *acted, struct json_writer *json) {
    struct str unknown = buf_str(&acted->unknown.items);
    struct str answered = buf_str(&acted->answered.items);
    if (!acted_any(acted)) return;
    json_key(json, STR("calls"));
    json_open_array(json);
    if (unknown.len) json_write_raw(json, unknown);
    if (answered.len) json_write_raw(json, answered);
    json_close(json);
}
