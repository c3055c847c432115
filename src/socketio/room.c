#include "base/mem.h"
#include "socketio/inner.h"

#include <stdlib.h>

#define ROOM_OF(link_) CONTAINER_OF(link_, struct member, in_room)
#define MEMBER_OF(link_) CONTAINER_OF(link_, struct member, in_socket)

void room_key(struct buf *out, struct str name_space, struct str room) {
    buf_append(out, name_space);
    buf_append_byte(out, ',');
    buf_append(out, room);
}

static struct buf room_key_of(const struct socketio_socket *socket, struct str room) {
    struct buf key;
    struct str name_space = socket->name_space->name;
    buf_init(&key, name_space.len + 1 + room.len);
    room_key(&key, name_space, room);
    return key;
}

static struct room *get_room(struct branch *branch, struct str key) {
    struct room *room = map_find(branch->rooms, key);
    if (room) return room;
    room = MEM_NEW(struct room);
    room->branch = branch;
    room->key = text_copy(key);
    list_init(&room->members);
    map_put(branch->rooms, key, room);
    return room;
}

static struct member *find_member(const struct socketio_socket *socket, struct str room) {
    struct buf key = room_key_of(socket, room);
    struct member *found = NULL;
    LIST_EACH(&socket->members, link) {
        struct member *member = MEMBER_OF(link);
        if (str_equal(text_str(member->room->key), buf_str(&key))) found = member;
    }
    buf_done(&key);
    return found;
}

bool room_has(const struct socketio_socket *socket, struct str room) {
    return find_member(socket, room) != NULL;
}

void room_join(struct socketio_socket *socket, struct str name) {
    if (room_has(socket, name)) return;
    struct buf key = room_key_of(socket, name);
    struct room *room = get_room(socket->peer->branch, buf_str(&key));
    struct member *member = MEM_NEW(struct member);
    member->room = room;
    member->socket = socket;
    list_init(&member->in_room);
    list_init(&member->in_socket);
    list_append(&room->members, &member->in_room);
    list_append(&socket->members, &member->in_socket);
    socket->room_count++;
    buf_done(&key);
}

static void leave(struct member *member) {
    struct room *room = member->room;
    list_remove(&member->in_room);
    list_remove(&member->in_socket);
    member->socket->room_count--;
    free(member);
    if (!list_empty(&room->members)) return;
    map_remove(room->branch->rooms, text_str(room->key));
    text_done(&room->key);
    free(room);
}

bool room_leave(struct socketio_socket *socket, struct str room) {
    struct member *member = find_member(socket, room);
    if (!member) return false;
    leave(member);
    return true;
}

void room_leave_all(struct socketio_socket *socket) {
    LIST_EACH(&socket->members, link) leave(MEMBER_OF(link));
}

/* Sending ends no peer at once, so the list stays as it is. */
void room_send(struct branch *branch, struct str key, struct parcel *parcel) {
    struct room *room = map_find(branch->rooms, key);
    uint64_t count = 0;
    if (!room) return;
    LIST_EACH(&room->members, link) {
        peer_send(ROOM_OF(link)->socket->peer, parcel);
        count++;
    }
    socketio_count(&branch->server->sent, count);
}
