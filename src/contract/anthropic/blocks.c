#include "contract/anthropic/blocks.h"

#include "wire/json.h"

#define CONTENT_MAX_BYTES (64 * MIB)

static const struct {
    const char *type, *member;
    struct str delta; /* what stands before its text */
} kinds[] = {
    [BLOCK_NONE] = {"", "", STR_INIT("")},
    [BLOCK_TEXT] = {"text", "text", STR_INIT(",\"delta\":{\"type\":\"text_delta\",\"text\":")},
    [BLOCK_THINKING] = {"thinking", "thinking",
                        STR_INIT(",\"delta\":{\"type\":\"thinking_delta\",\"thinking\":")},
};

void blocks_init(struct blocks *blocks) {
    *blocks = (struct blocks){.open = BLOCK_NONE};
    buf_init(&blocks->text, CONTENT_MAX_BYTES);
    buf_init(&blocks->array, CONTENT_MAX_BYTES);
}

void blocks_done(struct blocks *blocks) {
    buf_done(&blocks->text);
    buf_done(&blocks->array);
}

/* --- events of a stream ------------------------------------------------------------------- */

/* event: NAME, data: {"type":"NAME","index":N */
static void put_head(struct buf *out, struct str name, size_t index) {
    buf_append(out, STR("event: "));
    buf_append(out, name);
    buf_append(out, STR("\ndata: {\"type\":\""));
    buf_append(out, name);
    buf_append(out, STR("\",\"index\":"));
    buf_append_u64(out, index);
}

static void put_start(const struct blocks *blocks, struct buf *out) {
    put_head(out, STR("content_block_start"), blocks->count - 1);
    buf_printf(out, ",\"content_block\":{\"type\":\"%s\",\"%s\":\"\"%s}}\n\n",
               kinds[blocks->open].type, kinds[blocks->open].member,
               blocks->open == BLOCK_THINKING ? ",\"signature\":\"\"" : "");
}

static void put_delta(const struct blocks *blocks, struct str text, struct buf *out) {
    put_head(out, STR("content_block_delta"), blocks->count - 1);
    buf_append(out, kinds[blocks->open].delta);
    json_put_str(out, text);
    buf_append(out, STR("}}\n\n"));
}

static void put_stop(const struct blocks *blocks, struct buf *out) {
    put_head(out, STR("content_block_stop"), blocks->count - 1);
    buf_append(out, STR("}\n\n"));
}

/* --- blocks ------------------------------------------------------------------------------- */

static void gather(struct blocks *blocks) {
    struct json_writer json = json_writer(&blocks->array);
    if (blocks->count > 1) buf_append_byte(&blocks->array, ',');
    json_open_object(&json);
    json_member_str(&json, "type", str_from(kinds[blocks->open].type));
    json_member_str(&json, kinds[blocks->open].member, buf_str(&blocks->text));
    if (blocks->open == BLOCK_THINKING) json_member_str(&json, "signature", STR_EMPTY);
    json_close(&json);
    buf_clear(&blocks->text);
}

static void end_open(struct blocks *blocks, struct buf *out) {
    if (blocks->open == BLOCK_NONE) return;
    if (out) {
        put_stop(blocks, out);
    } else {
        gather(blocks);
    }
    blocks->open = BLOCK_NONE;
}

static void begin(struct blocks *blocks, enum block_kind kind, struct buf *out) {
    if (blocks->open == kind) return;
    end_open(blocks, out);
    blocks->open = kind;
    blocks->count++;
    if (out) put_start(blocks, out);
}

static void add(struct blocks *blocks, enum block_kind kind, struct str text, struct buf *out) {
    begin(blocks, kind, out);
    if (out) {
        put_delta(blocks, text, out);
    } else {
        buf_append(&blocks->text, text);
    }
}

void blocks_add(struct blocks *blocks, enum block_kind kind, struct str text) {
    struct buf *out = blocks->call ? route_sse_out(blocks->call) : NULL;
    if (blocks->call && !out) return; /* it was cut */
    size_t from = out ? out->len : 0;
    add(blocks, kind, text, out);
    if (out) route_sse_wrote(blocks->call, from);
}

void blocks_add_texts(struct blocks *blocks, struct str texts) {
    struct buf *out = blocks->call ? route_sse_out(blocks->call) : NULL;
    struct str agent, text;
    if (blocks->call && !out) return;
    size_t from = out ? out->len : 0;
    while (event_next_text(&texts, &agent, &text)) add(blocks, BLOCK_TEXT, text, out);
    if (out) route_sse_wrote(blocks->call, from);
}

/* The input comes in a delta of its own, as their server sends it. */
static void put_call(const struct blocks *blocks, const struct event *event, struct buf *out) {
    put_head(out, STR("content_block_start"), blocks->count - 1);
    buf_append(out, STR(",\"content_block\":{\"type\":\"tool_use\",\"id\":"));
    json_put_str(out, event->tool_call.call_id);
    buf_append(out, STR(",\"name\":"));
    json_put_str(out, event->tool_call.tool);
    buf_append(out, STR(",\"input\":{}}}\n\n"));
    put_head(out, STR("content_block_delta"), blocks->count - 1);
    buf_append(out, STR(",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":"));
    json_put_str(out, event->tool_call.args);
    buf_append(out, STR("}}\n\n"));
    put_stop(blocks, out);
}

/* This API has objects alone; the run may have begun at a door that has any text. */
static struct str call_input(const struct event *event) {
    struct json args;
    struct err e;
    bool object = json_read(event->tool_call.args, &args, &e) && args.kind == JSON_OBJECT;
    return object ? args.raw : STR("{}");
}

static void gather_call(struct blocks *blocks, const struct event *event) {
    struct json_writer json = json_writer(&blocks->array);
    if (blocks->count > 1) buf_append_byte(&blocks->array, ',');
    json_open_object(&json);
    json_member_str(&json, "type", STR("tool_use"));
    json_member_str(&json, "id", event->tool_call.call_id);
    json_member_str(&json, "name", event->tool_call.tool);
    json_member_raw(&json, "input", call_input(event));
    json_close(&json);
}

void blocks_add_call(struct blocks *blocks, const struct event *event) {
    struct buf *out = blocks->call ? route_sse_out(blocks->call) : NULL;
    if (blocks->call && !out) return;
    size_t from = out ? out->len : 0;
    end_open(blocks, out);
    blocks->count++;
    if (out) {
        put_call(blocks, event, out);
        route_sse_wrote(blocks->call, from);
    } else {
        gather_call(blocks, event);
    }
}

void blocks_end(struct blocks *blocks) {
    struct buf *out = blocks->call ? route_sse_out(blocks->call) : NULL;
    if (blocks->call && !out) return;
    size_t from = out ? out->len : 0;
    end_open(blocks, out);
    if (out) route_sse_wrote(blocks->call, from);
}
