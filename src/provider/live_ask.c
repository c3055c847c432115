#include "provider/live_ask.h"

#include "provider/parts.h"
#include "wire/base64.h"

/* --- kinds of sound ----------------------------------------------------------------------- */

/* clang-format off */
static const struct {
    struct str type, beta, other, short_name;
    int32_t rate_hz;
} sounds[LIVE_SOUND_COUNT] = {
    [LIVE_SOUND_NONE] = {STR_INIT(""),           STR_INIT(""),          STR_INIT(""),          STR_INIT(""),     0},
    [LIVE_SOUND_PCM]  = {STR_INIT("audio/pcm"),  STR_INIT("pcm16"),     STR_INIT("audio/l16"), STR_INIT("pcm"),  24000},
    [LIVE_SOUND_PCMU] = {STR_INIT("audio/pcmu"), STR_INIT("g711_ulaw"), STR_INIT("mulaw"),     STR_INIT("pcmu"), 8000},
    [LIVE_SOUND_PCMA] = {STR_INIT("audio/pcma"), STR_INIT("g711_alaw"), STR_INIT("alaw"),      STR_INIT("pcma"), 8000},
};
/* clang-format on */

enum live_sound live_sound_find(struct str name) {
    for (unsigned i = LIVE_SOUND_NONE + 1; i < LIVE_SOUND_COUNT; i++) {
        if (str_equal_nocase(name, sounds[i].type) || str_equal_nocase(name, sounds[i].beta) ||
            str_equal_nocase(name, sounds[i].short_name) ||
            str_equal_nocase(name, sounds[i].other))
            return (enum live_sound)i;
    }
    return LIVE_SOUND_NONE;
}

struct str live_sound_type(enum live_sound sound) {
    return sounds[sound].type;
}

int32_t live_sound_rate_hz(enum live_sound sound) {
    return sounds[sound].rate_hz;
}

/* --- events ------------------------------------------------------------------------------- */

static struct json_writer live_ask_begin(struct buf *out, struct str type, struct str id) {
    struct json_writer writer = json_writer(out);
    json_open_object(&writer);
    json_member_str(&writer, "type", type);
    if (id.len) json_member_str(&writer, "event_id", id);
    return writer;
}

static void put_format(struct json_writer *writer, enum live_sound sound) {
    json_member_object(writer, "format");
    json_member_str(writer, "type", sounds[sound].type);
    if (sound == LIVE_SOUND_PCM) json_member_i64(writer, "rate", sounds[sound].rate_hz);
    json_close(writer);
}

static void put_modalities(struct json_writer *writer, const char *key, bool text, bool sound) {
    json_member_array(writer, key);
    if (text) json_write_str(writer, STR("text"));
    if (sound) json_write_str(writer, STR("audio"));
    json_close(writer);
}

static void put_session(struct json_writer *writer, const struct live_session *session) {
    bool speaks = session->out != LIVE_SOUND_NONE;
    json_member_str(writer, "type", STR("realtime"));
    put_modalities(writer, "output_modalities", !speaks, speaks);
    json_member_object(writer, "audio");
    json_member_object(writer, "input");
    put_format(writer, session->in);
    json_member_null(writer, "turn_detection");
    json_close(writer);
    if (speaks) {
        json_member_object(writer, "output");
        put_format(writer, session->out);
        if (session->voice.len) json_member_str(writer, "voice", session->voice);
        json_close(writer);
    }
    json_close(writer);
}

static void put_beta_session(struct json_writer *writer, const struct live_session *session) {
    bool speaks = session->out != LIVE_SOUND_NONE;
    put_modalities(writer, "modalities", true, speaks);
    json_member_str(writer, "input_audio_format", sounds[session->in].beta);
    if (speaks) json_member_str(writer, "output_audio_format", sounds[session->out].beta);
    if (session->voice.len) json_member_str(writer, "voice", session->voice);
    json_member_null(writer, "turn_detection");
}

void live_ask_session(struct buf *out, const struct live_session *session, struct str id) {
    struct json_writer writer = live_ask_begin(out, STR("session.update"), id);
    json_member_object(&writer, "session");
    (session->beta ? put_beta_session : put_session)(&writer, session);
    if (session->instructions.len)
        json_member_str(&writer, "instructions", session->instructions);
    json_close(&writer);
    json_close(&writer);
}

/* --- messages ----------------------------------------------------------------------------- */

static void live_ask_put_text(struct json_writer *writer, const char *type, struct str text) {
    json_open_object(writer);
    json_member_str(writer, "type", str_from(type));
    json_member_str(writer, "text", text);
    json_close(writer);
}

static void live_ask_put_part(struct json_writer *writer, const char *type,
                              const struct part *part) {
    json_open_object(writer);
    if (part->kind == PART_TEXT) {
        json_member_str(writer, "type", str_from(type));
        json_member_raw(writer, "text", part->text.raw);
    } else {
        json_member_str(writer, "type", STR("input_image"));
        parts_put_url(writer, "image_url", part);
    }
    json_close(writer);
}

static void put_content(struct json_writer *writer, const char *type,
                        const struct message *message) {
    json_member_array(writer, "content");
    if (message->parts.len) {
        struct json_reader parts = parts_enter(message->parts);
        for (struct part part; parts_next(&parts, &part);)
            live_ask_put_part(writer, type, &part);
    } else {
        live_ask_put_text(writer, type, message->text);
    }
    json_close(writer);
}

void live_ask_message(struct buf *out, const struct message *message, bool beta,
                      struct str id) {
    bool answer = message->role == MESSAGE_AGENT, system = message->role == MESSAGE_SYSTEM;
    const char *said = beta ? "text" : "output_text";
    struct json_writer writer = live_ask_begin(out, STR("conversation.item.create"), id);
    json_member_object(&writer, "item");
    json_member_str(&writer, "type", STR("message"));
    json_member_str(&writer, "role",
                    answer   ? STR("assistant")
                    : system ? STR("system")
                             : STR("user"));
    put_content(&writer, answer ? said : "input_text", message);
    json_close(&writer);
    json_close(&writer);
}

/* --- sound, and answers ------------------------------------------------------------------- */

void live_ask_sound(struct buf *out, struct str bytes) {
    buf_append(out, STR("{\"type\":\"input_audio_buffer.append\",\"audio\":\""));
    base64_encode(out, bytes, BASE64_STANDARD, BASE64_PADDED);
    buf_append(out, STR("\"}"));
}

static void put_bare(struct buf *out, struct str type, struct str id) {
    struct json_writer writer = live_ask_begin(out, type, id);
    json_close(&writer);
}

void live_ask_commit(struct buf *out, struct str id) {
    put_bare(out, STR("input_audio_buffer.commit"), id);
}

void live_ask_response(struct buf *out, struct str id) {
    put_bare(out, STR("response.create"), id);
}

void live_ask_cancel(struct buf *out, struct str id) {
    put_bare(out, STR("response.cancel"), id);
}
