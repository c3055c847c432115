#include "contract/a2a/webhook.h"

#include "store/webhook_claim.h"
#include "wire/event_json.h"

/* --- texts -------------------------------------------------------------------------------- */

/* What may stand in a header or a URL. */
static bool is_printable(struct str text, char least) {
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < least || text.at[i] > '~') return false;
    }
    return true;
}

static bool webhook_take(struct json object, const char *key, size_t max_bytes, char least,
                         struct arena *arena, struct str *ret, struct err *e) {
    struct json value = json_find(object, str_from(key));
    if (json_is_absent(value)) return true;
    if (value.kind != JSON_STRING)
        return err_set(e, ERR_INVALID_ARGUMENT, "%s must be a string, not %s", key,
                       json_kind_name(value.kind));
    if (!json_str(value, arena, ret))
        return err_set(e, ERR_RESOURCE_EXHAUSTED, "the request is larger than a call may hold");
    return (ret->len <= max_bytes && is_printable(*ret, least)) ||
           err_set(e, ERR_INVALID_ARGUMENT,
                   "%s must be printable ASCII, of at most %zu characters", key, max_bytes);
}

/* --- reading ------------------------------------------------------------------------------ */

static bool take_url(struct json object, struct arena *arena, struct webhook *ret,
                     struct err *e) {
    if (!webhook_take(object, "url", WEBHOOK_URL_MAX_BYTES, '!', arena, &ret->url, e))
        return false;
    struct str scheme = str_head(ret->url, str_find(ret->url, STR("://")));
    return str_equal_nocase(scheme, STR("https")) || str_equal_nocase(scheme, STR("http")) ||
           err_set(e, ERR_INVALID_ARGUMENT, "url must begin with https:// or http://");
}

/* 0.3 names several schemes, of which the first is used. */
static bool take_authentication(enum a2a_dialect dialect, struct json object,
                                struct arena *arena, struct webhook *ret, struct err *e) {
    struct json about = json_find(object, STR("authentication"));
    if (json_is_absent(about)) return true;
    if (about.kind != JSON_OBJECT)
        return err_set(e, ERR_INVALID_ARGUMENT, "authentication must be an object, not %s",
                       json_kind_name(about.kind));
    if (!webhook_take(about, "credentials", WEBHOOK_SECRET_MAX_BYTES, ' ', arena,
                      &ret->credentials, e))
        return false;
    struct json schemes = json_find(about, STR("schemes"));
    struct json first = json_at(schemes, 0);
    if (dialect == A2A_0_3 && first.kind == JSON_STRING) {
        if (!json_str(first, arena, &ret->scheme))
            return err_set(e, ERR_RESOURCE_EXHAUSTED,
                           "the request is larger than a call may hold");
    } else if (!webhook_take(about, "scheme", ID_MAX_BYTES, '!', arena, &ret->scheme, e)) {
        return false;
    }
    return (ret->scheme.len <= ID_MAX_BYTES && str_is_plain(ret->scheme, "-_.")) ||
           err_set(e, ERR_INVALID_ARGUMENT,
                   "authentication names a scheme that is no word, such as Bearer");
}

bool webhook_read(enum a2a_dialect dialect, struct json object, struct arena *arena,
                  struct webhook *ret, struct err *e) {
    *ret = (struct webhook){.id = STR_EMPTY,
                            .url = STR_EMPTY,
                            .token = STR_EMPTY,
                            .scheme = STR_EMPTY,
                            .credentials = STR_EMPTY};
    if (object.kind != JSON_OBJECT)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "the push notification configuration must be an object, not %s",
                       json_kind_name(object.kind));
    return webhook_take(object, "id", ID_MAX_BYTES, '!', arena, &ret->id, e) &&
           (!ret->id.len || id_check("id", ret->id, e)) && take_url(object, arena, ret, e) &&
           webhook_take(object, "token", WEBHOOK_SECRET_MAX_BYTES, ' ', arena, &ret->token,
                        e) &&
           take_authentication(dialect, object, arena, ret, e);
}

/* --- writing ------------------------------------------------------------------------------ */

static void write_members(const struct webhook *webhook, enum a2a_dialect dialect,
                          bool with_credentials, struct json_writer *w) {
    json_member_str(w, "id", webhook->id);
    json_member_str(w, "url", webhook->url);
    if (webhook->token.len) json_member_str(w, "token", webhook->token);
    if (!webhook->scheme.len) return;
    json_member_object(w, "authentication");
    if (dialect == A2A_0_3) {
        json_member_array(w, "schemes");
        json_write_str(w, webhook->scheme);
        json_close(w);
    } else {
        json_member_str(w, "scheme", webhook->scheme);
    }
    if (with_credentials) json_member_str(w, "credentials", webhook->credentials);
    json_close(w);
}

void webhook_write(const struct webhook *webhook, uint64_t run, enum a2a_dialect dialect,
                   struct json_writer *w) {
    bool wrapped = dialect == A2A_0_3;
    json_open_object(w);
    event_json_id(w, "taskId", run);
    if (wrapped) json_member_object(w, "pushNotificationConfig");
    write_members(webhook, dialect, false, w);
    if (wrapped) json_close(w);
    json_close(w);
}

/* --- as it is kept ------------------------------------------------------------------------ */

void webhook_record_write_workspace(struct str workspace, struct buf *out) {
    struct json_writer w = json_writer(out);
    json_open_object(&w);
    json_member_str(&w, "workspace", workspace);
    buf_append_byte(out, ',');
}

void webhook_record_write(const struct webhook_record *record, struct buf *out) {
    struct json_writer w = json_writer(out);
    json_open_object(&w);
    json_member_str(&w, "workspace", record->workspace);
    json_member_bool(&w, "old", record->dialect == A2A_0_3);
    json_member_object(&w, "webhook");
    write_members(&record->webhook, A2A_1_0, true, &w);
    json_close(&w);
    json_close(&w);
}

bool webhook_record_read(struct str bytes, struct arena *arena, struct webhook_record *ret) {
    struct json all = {.kind = JSON_NONE};
    struct err e;
    bool is_old = false;
    if (!json_read(bytes, &all, &e)) return false;
    struct json workspace = json_find(all, STR("workspace"));
    struct json webhook = json_find(all, STR("webhook"));
    struct json old = json_find(all, STR("old"));
    if (!json_bool(old, &is_old) || !json_str(workspace, arena, &ret->workspace)) return false;
    ret->dialect = is_old ? A2A_0_3 : A2A_1_0;
    return webhook_read(A2A_1_0, webhook, arena, &ret->webhook, &e) && ret->webhook.id.len;
}

void webhook_key_begin(uint64_t run, struct str id, struct buf *ret) {
    buf_init(ret, WEBHOOK_KEY_MAX_BYTES);
    buf_append_u64(ret, run);
    buf_append_byte(ret, '-');
    buf_append(ret, id);
}

bool webhook_key_read(struct str key, uint64_t *ret_run) {
    struct str id, run = str_split(key, '-', &id);
    return id.len > 0 && str_to_u64(run, ret_run) && *ret_run > 0;
}

uint64_t webhook_sent_read(struct str bytes, bool *ret_over) {
    uint64_t sent;
    *ret_over = str_ends(bytes, STR(WEBHOOK_CLAIM_OVER));
    if (*ret_over) bytes = str_head(bytes, bytes.len - strlen(WEBHOOK_CLAIM_OVER));
    return str_to_u64(bytes, &sent) ? sent : 0;
}
