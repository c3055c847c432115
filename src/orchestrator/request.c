#include "orchestrator/request.h"

#include "orchestrator/jsonb.h"

#include <string.h>

#define LOCAL_ID_MAX_BYTES 256

static bool read_text(struct json value, struct arena *arena, struct str *ret, struct err *e) {
    *ret = STR_EMPTY;
    if (json_is_absent(value)) return true;
    if (!json_str(value, arena, ret))
        return err_set(e, ERR_INVALID_ARGUMENT, "invalid payload");
    return !memchr(ret->at, 0, ret->len) ||
           err_set(e, ERR_INVALID_ARGUMENT,
                   "invalid payload: a text has a NUL (U+0000), which the database cannot "
                   "hold; leave it out");
}

static bool read_mention(struct json json, struct arena *arena, struct request_mention *ret,
                         struct err *e) {
    int64_t offset = 0, length = 0;
    if (!read_text(json_find(json, STR("agent_id")), arena, &ret->agent, e)) return false;
    bool placed = json_i64(json_find(json, STR("offset")), &offset) &&
                  json_i64(json_find(json, STR("length")), &length) && offset >= 0 &&
                  length >= 0;
    ret->offset = placed ? (uint64_t)offset : 0;
    ret->length = placed ? (uint64_t)length : 0;
    return true;
}

static bool read_mentions(struct json json, struct arena *arena, struct request *ret,
                          struct err *e) {
    struct json_reader reader = json_enter(json);
    struct json item;
    while (json.kind == JSON_ARRAY && json_next_item(&reader, &item)) {
        if (ret->mention_count == REQUEST_MENTIONS_MAX)
            return err_set(e, ERR_INVALID_ARGUMENT, "invalid payload: more than %d mentions",
                           REQUEST_MENTIONS_MAX);
        if (!read_mention(item, arena, &ret->mentions[ret->mention_count++], e)) return false;
    }
    return true;
}

/* PostgreSQL's jsonb has no NUL. */
static bool read_attachments(struct json json, struct request *ret, struct err *e) {
    if (json_is_absent(json)) return true;
    if (json.kind != JSON_ARRAY)
        return err_set(e, ERR_INVALID_ARGUMENT, "invalid payload: attachments are no array");
    if (jsonb_has_nul(json.raw))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "invalid payload: attachments have a NUL (U+0000), which the database "
                       "cannot hold; leave it out");
    ret->attachments = json.raw;
    return true;
}

static bool read_local_id(struct json json, struct arena *arena, struct str *ret,
                          struct err *e) {
    if (!read_text(json_find(json, STR("local_id")), arena, ret, e)) return false;
    return ret->len <= LOCAL_ID_MAX_BYTES ||
           err_set(e, ERR_INVALID_ARGUMENT, "invalid payload: local_id has more than %d bytes",
                   LOCAL_ID_MAX_BYTES);
}

bool request_read(struct json json, struct arena *arena, struct request *ret, struct err *e) {
    *ret = (struct request){.attachments = STR_EMPTY};
    if (json.kind != JSON_OBJECT) return err_set(e, ERR_INVALID_ARGUMENT, "invalid payload");
    return read_text(json_find(json, STR("workspace_id")), arena, &ret->workspace, e) &&
           read_text(json_find(json, STR("conversation_id")), arena, &ret->conversation, e) &&
           read_local_id(json, arena, &ret->local_id, e) &&
           read_text(json_find(json_find(json, STR("content")), STR("text")), arena, &ret->text,
                     e) &&
           read_mentions(json_find(json, STR("mentions")), arena, ret, e) &&
           read_attachments(json_find(json, STR("attachments")), ret, e);
}

struct talk_request request_for(const struct request *request, struct workspace *workspace,
                                struct talk_mention *mentions) {
    size_t count = 0;
    for (size_t i = 0; i < request->mention_count; i++) {
        const struct request_mention *mention = &request->mentions[i];
        size_t agent = workspace_agent(workspace, mention->agent);
        if (agent < workspace->agent_count)
            mentions[count++] = (struct talk_mention){agent, mention->offset, mention->length};
    }
    return (struct talk_request){.workspace = workspace,
                                 .text = request->text,
                                 .local_id = request->local_id,
                                 .attachments = request->attachments,
                                 .mentions = mentions,
                                 .mention_count = count};
}
