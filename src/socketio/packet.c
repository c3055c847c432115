#include "socketio/packet.h"

#define ROOT STR("/")

/* Digits of an ack id that still fit an int64_t. */
#define ACK_DIGITS_MAX 18

/* --- reading ------------------------------------------------------------------------------- */

static struct str take_digits(struct str *text) {
    size_t len = 0;
    while (len < text->len && text->at[len] >= '0' && text->at[len] <= '9') len++;
    struct str digits = str_head(*text, len);
    *text = str_skip(*text, len);
    return digits;
}

static bool packet_read_kind(struct str text, struct packet *packet, struct err *e) {
    if (text.len == 0) return err_set(e, ERR_MALFORMED, "a Socket.IO packet is empty");
    if (text.at[0] == '5' || text.at[0] == '6')
        return err_set(e, ERR_UNIMPLEMENTED,
                       "binary events are not supported; send the data as JSON");
    if (text.at[0] < '0' || text.at[0] > '4')
        return err_set(e, ERR_MALFORMED, "a Socket.IO packet of an unknown type");
    packet->kind = (enum packet_kind)(text.at[0] - '0');
    return true;
}

/* "/v1?token=x," is the namespace "/v1". */
static bool read_namespace(struct str *text, struct packet *packet, struct err *e) {
    packet->name_space = ROOT;
    if (!str_starts(*text, STR("/"))) return true;
    struct str query, rest;
    struct str name = str_split(*text, ',', &rest);
    packet->name_space = str_split(name, '?', &query);
    *text = rest.at ? rest : STR_EMPTY;
    if (packet->name_space.len <= PACKET_NAMESPACE_MAX_BYTES) return true;
    return err_set(e, ERR_MALFORMED, "the name of a namespace is longer than %d bytes",
                   PACKET_NAMESPACE_MAX_BYTES);
}

static bool read_ack(struct str *text, struct packet *packet, struct err *e) {
    struct str digits = take_digits(text);
    packet->ack = -1;
    if (digits.len == 0) return true;
    bool fits = digits.len <= ACK_DIGITS_MAX && str_to_i64(digits, &packet->ack);
    return fits ||
           err_set(e, ERR_MALFORMED, "an ack id has more than %d digits", ACK_DIGITS_MAX);
}

static bool is_event(struct json data) {
    return data.kind == JSON_ARRAY && json_at(data, 0).kind == JSON_STRING;
}

static bool fits_kind(const struct packet *packet) {
    enum json_kind data = packet->data.kind;
    switch (packet->kind) {
    case PACKET_CONNECT: return data == JSON_OBJECT || data == JSON_NONE;
    case PACKET_DISCONNECT: return data == JSON_NONE;
    case PACKET_EVENT: return is_event(packet->data);
    case PACKET_ACK: return data == JSON_ARRAY && packet->ack >= 0;
    case PACKET_CONNECT_ERROR: return data == JSON_OBJECT || data == JSON_STRING;
    }
    return false;
}

bool packet_read(struct str text, struct packet *ret, struct err *e) {
    static const char *const wanted[] = {
        [PACKET_CONNECT] = "CONNECT takes an object or nothing",
        [PACKET_DISCONNECT] = "DISCONNECT takes nothing",
        [PACKET_EVENT] = "EVENT takes an array that begins with the name of the event",
        [PACKET_ACK] = "ACK takes an id and an array",
        [PACKET_CONNECT_ERROR] = "CONNECT_ERROR takes an object",
    };
    struct packet packet = {.data = {.kind = JSON_NONE}};
    if (!packet_read_kind(text, &packet, e)) return false;
    text = str_skip(text, 1);
    if (!read_namespace(&text, &packet, e) || !read_ack(&text, &packet, e)) return false;
    if (text.len > 0 && !json_read(text, &packet.data, e))
        return err_add(e, "a Socket.IO packet");
    if (!fits_kind(&packet)) return err_set(e, ERR_MALFORMED, "%s", wanted[packet.kind]);
    *ret = packet;
    return true;
}

/* --- writing ------------------------------------------------------------------------------- */

static void packet_put_head(struct buf *out, enum packet_kind kind, struct str name_space) {
    buf_append_byte(out, ENGINEIO_MESSAGE);
    buf_append_byte(out, (char)('0' + (int)kind));
    if (str_equal(name_space, ROOT)) return;
    buf_append(out, name_space);
    buf_append_byte(out, ',');
}

void packet_put_connect(struct buf *out, struct str name_space, struct str sid) {
    struct json_writer writer = json_writer(out);
    packet_put_head(out, PACKET_CONNECT, name_space);
    json_open_object(&writer);
    json_member_str(&writer, "sid", sid);
    json_close(&writer);
}

void packet_put_error(struct buf *out, struct str name_space, struct str message,
                      struct str data) {
    struct json_writer writer = json_writer(out);
    packet_put_head(out, PACKET_CONNECT_ERROR, name_space);
    json_open_object(&writer);
    json_member_str(&writer, "message", message);
    if (data.len) json_member_raw(&writer, "data", data);
    json_close(&writer);
}

void packet_put_disconnect(struct buf *out, struct str name_space) {
    packet_put_head(out, PACKET_DISCONNECT, name_space);
}

void packet_put_event(struct buf *out, struct str name_space, struct str event,
                      struct str json) {
    packet_put_head(out, PACKET_EVENT, name_space);
    buf_append_byte(out, '[');
    json_put_str(out, event);
    if (json.len) buf_append_byte(out, ',');
    buf_append(out, json);
    buf_append_byte(out, ']');
}

void packet_put_ack(struct buf *out, struct str name_space, int64_t ack, struct str json) {
    packet_put_head(out, PACKET_ACK, name_space);
    buf_append_i64(out, ack);
    buf_append_byte(out, '[');
    buf_append(out, json);
    buf_append_byte(out, ']');
}
