#include "conversation/reply_text.h"

#include "base/mem.h"
#include "base/pool.h"

#include <stdlib.h>

#define STEP_BYTES 512 /* sizes of pieces are multiples of it, less what the allocator adds */
#define ALLOCATOR_BYTES 8
#define GROWTH_PART 8
#define LARGEST_BYTES (64 * KIB)
#define BURST_BYTES (4 * KIB) /* a short reply that comes at once */

struct reply_piece {
    struct reply_piece *next;
    size_t len, room;
    char bytes[];
};

static _Thread_local struct pool bursts = POOL(sizeof(struct reply_piece) + BURST_BYTES, 256);

static struct reply_piece *piece_new(size_t room) {
    size_t size = sizeof(struct reply_piece) + room;
    struct reply_piece *piece = room == BURST_BYTES ? pool_take(&bursts) : mem_alloc(size);
    mem_count(size);
    piece->next = NULL;
    piece->len = 0;
    piece->room = room;
    return piece;
}

static void piece_free(struct reply_piece *piece) {
    mem_uncount(sizeof(*piece) + piece->room);
    if (piece->room == BURST_BYTES) {
        pool_give(&bursts, piece);
    } else {
        free(piece);
    }
}

void reply_text_init(struct reply_text *text, size_t max_bytes) {
    *text = (struct reply_text){.max_bytes = max_bytes};
}

void reply_text_clear(struct reply_text *text) {
    for (struct reply_piece *piece = text->first; piece;) {
        struct reply_piece *next = piece->next;
        piece_free(piece);
        piece = next;
    }
    reply_text_init(text, text->max_bytes);
}

void reply_text_restart(struct reply_text *text) {
    reply_text_whole(text);
    struct reply_piece *piece = text->first;
    text->len = 0;
    text->full = false;
    text->end = piece ? piece->bytes : NULL;
    text->left = piece ? piece->room : 0;
}

/* The room of the next piece, which begins with `len` bytes after `before` bytes of the reply. */
static size_t room_after(size_t before, size_t len) {
    size_t part = before / GROWTH_PART;
    if (part > LARGEST_BYTES) part = LARGEST_BYTES;
    size_t wanted = len > part ? len : part;
    if (wanted <= BURST_BYTES && len > BURST_BYTES / 2) return BURST_BYTES;
    size_t size = wanted + sizeof(struct reply_piece) + ALLOCATOR_BYTES;
    size = (size + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
    return size - ALLOCATOR_BYTES - sizeof(struct reply_piece);
}

static void close_last(struct reply_text *text) {
    if (text->last) text->last->len = (size_t)(text->end - text->last->bytes);
}

static void add_piece(struct reply_text *text, size_t room) {
    struct reply_piece *piece = piece_new(room);
    close_last(text);
    if (text->last) {
        text->last->next = piece;
    } else {
        text->first = piece;
    }
    text->last = piece;
    text->end = piece->bytes;
    text->left = room;
}

bool reply_text_append_more(struct reply_text *text, struct str bytes) {
    if (text->full || bytes.len > text->max_bytes - text->len) {
        text->full = true;
        text->left = 0;
        return false;
    }
    size_t fits = text->left;
    struct str rest = str_skip(bytes, fits);
    if (fits && !reply_text_append(text, str_head(bytes, fits))) return false;
    add_piece(text, room_after(text->len, rest.len));
    return reply_text_append(text, rest);
}

struct str reply_text_whole(struct reply_text *text) {
    if (!text->first) return STR_EMPTY;
    if (text->first == text->last) return str_of(text->first->bytes, text->len);
    struct reply_piece *whole = piece_new(text->len);
    close_last(text);
    for (struct reply_piece *piece = text->first; piece;) {
        struct reply_piece *next = piece->next;
        memcpy(whole->bytes + whole->len, piece->bytes, piece->len);
        whole->len += piece->len;
        piece_free(piece);
        piece = next;
    }
    text->first = text->last = whole;
    text->end = whole->bytes + whole->len;
    text->left = 0;
    return str_of(whole->bytes, whole->len);
}

void reply_text_take(struct reply_text *text, struct reply_text *later) {
    if (later->first) {
        close_last(text);
        if (text->last) {
            text->last->next = later->first;
        } else {
            text->first = later->first;
        }
        text->last = later->last;
        text->end = later->end;
        text->left = later->left;
        text->len += later->len;
        text->full = text->len > text->max_bytes;
        if (text->full) text->left = 0;
    }
    reply_text_init(later, later->max_bytes);
}
