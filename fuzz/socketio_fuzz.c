/* What is read as a packet reads the same after it was written once more. */
#include "socketio/packet.h"

#include <assert.h>

static void rewrite(const struct packet *packet, struct buf *out) {
    struct buf text;
    buf_init(&text, packet->data.raw.len + 1);
    switch (packet->kind) {
    case PACKET_CONNECT: packet_put_connect(out, packet->name_space, STR("sid")); break;
    case PACKET_DISCONNECT: packet_put_disconnect(out, packet->name_space); break;
    case PACKET_EVENT:
        assert(json_text(json_at(packet->data, 0), &text));
        packet_put_event(out, packet->name_space, buf_str(&text), json_at(packet->data, 1).raw);
        break;
    case PACKET_ACK:
        packet_put_ack(out, packet->name_space, packet->ack, json_at(packet->data, 0).raw);
        break;
    case PACKET_CONNECT_ERROR:
        packet_put_error(out, packet->name_space, STR("no"), packet->data.raw);
        break;
    }
    buf_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct packet packet, again;
    struct err e;
    struct buf out;
    if (size > 65536 || !packet_read(str_of(data, size), &packet, &e)) return 0;
    buf_init(&out, 8 * size + 256);
    rewrite(&packet, &out);
    assert(buf_ok(&out) && out.at[0] == ENGINEIO_MESSAGE);
    if (packet_read(str_skip(buf_str(&out), 1), &again, &e)) {
        assert(again.kind == packet.kind);
        assert(str_equal(again.name_space, packet.name_space));
        if (packet.kind == PACKET_ACK) assert(again.ack == packet.ack);
    } else {
        /* One level deeper, it may be too deep. */
        assert(packet.kind == PACKET_CONNECT_ERROR);
    }
    buf_done(&out);
    return 0;
}
