#include "store/fold_window.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define LOG_HEADER_BYTES 32
#define FRAME_HEADER_BYTES 24 /* begins with the number of the page */
#define FRAME_BYTES (FRAME_HEADER_BYTES + FOLD_PAGE_BYTES)

struct fold_window {
    uint32_t first, count; /* frames, counted from 1; none at first */
    uint32_t pages[FOLD_WINDOW_FRAMES];
    bool newest[FOLD_WINDOW_FRAMES]; /* of the frames of its page that the window has */
    bool written[FOLD_WINDOW_FRAMES];
    uint32_t last;        /* the frame that was read last; 0: none */
    const void *given_to; /* where it was put; NULL: it did not come from the window */
    char frames[FOLD_WINDOW_FRAMES * FRAME_BYTES];
    char room[FOLD_WINDOW_FRAMES * FOLD_PAGE_BYTES];
};

struct fold_window *fold_window_new(void) {
    struct fold_window *window = mem_alloc(sizeof(*window));
    window->first = window->count = window->last = 0;
    window->given_to = NULL;
    return window;
}

void fold_window_free(struct fold_window *window) {
    free(window);
}

/* --- reading ------------------------------------------------------------------------------ */

/* The frame whose page is read; 0: it is no page of a frame. */
static uint32_t frame_at(int len, sqlite3_int64 at) {
    sqlite3_int64 begin = at - LOG_HEADER_BYTES - FRAME_HEADER_BYTES;
    if (len != FOLD_PAGE_BYTES || begin < 0 || begin % FRAME_BYTES != 0) return 0;
    sqlite3_int64 frame = begin / FRAME_BYTES + 1;
    return frame < UINT32_MAX ? (uint32_t)frame : 0;
}

static bool has_frame(const struct fold_window *window, uint32_t frame) {
    return frame >= window->first && frame - window->first < window->count;
}

/* What follows the window, or the frame that was read last. Others are mostly pages that each commit
 * changes: their newest frames lie far away, and the next page does not lie there. */
static bool goes_on(const struct fold_window *window, uint32_t frame) {
    uint32_t end = window->first + window->count;
    return window->count == 0 || frame == window->last + 1 ||
           (frame >= end && frame - end < FOLD_WINDOW_FRAMES);
}

static const char *frame_of(const struct fold_window *window, size_t i) {
    return window->frames + i * FRAME_BYTES;
}

static uint32_t page_of(const char *frame) {
    const unsigned char *at = (const unsigned char *)frame;
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void mark_newest(struct fold_window *window) {
    for (uint32_t i = 0; i < window->count; i++) {
        uint32_t later = i + 1;
        while (later < window->count && window->pages[later] != window->pages[i]) later++;
        window->newest[i] = later == window->count;
    }
}

static int load(struct fold_window *window, sqlite3_file *log, uint32_t frame, uint32_t upto) {
    uint32_t count = upto - frame + 1;
    if (count > FOLD_WINDOW_FRAMES) count = FOLD_WINDOW_FRAMES;
    sqlite3_int64 at = LOG_HEADER_BYTES + (sqlite3_int64)(frame - 1) * FRAME_BYTES;
    window->count = 0;
    int result = log->pMethods->xRead(log, window->frames, (int)(count * FRAME_BYTES), at);
    if (result != SQLITE_OK) return result;
    window->first = frame;
    window->count = count;
    for (uint32_t i = 0; i < count; i++) window->pages[i] = page_of(frame_of(window, i));
    mark_newest(window);
    memset(window->written, 0, sizeof(window->written));
    return SQLITE_OK;
}

bool fold_window_read(struct fold_window *window, sqlite3_file *log, uint32_t upto, void *to,
                      int len, sqlite3_int64 at, int *ret_result) {
    uint32_t frame = frame_at(len, at);
    window->given_to = NULL;
    if (frame == 0 || frame > upto) return false;
    bool loads = !has_frame(window, frame) && goes_on(window, frame);
    window->last = frame;
    *ret_result = loads ? load(window, log, frame, upto) : SQLITE_OK;
    if (*ret_result != SQLITE_OK) return true;
    if (!has_frame(window, frame)) return false;
    memcpy(to, frame_of(window, frame - window->first) + FRAME_HEADER_BYTES, FOLD_PAGE_BYTES);
    window->given_to = to;
    return true;
}

/* --- writing ------------------------------------------------------------------------------ */

/* The newest frame of a page, which for an appended page is mostly the one after frame `i`. An older
 * one would replace what an earlier run wrote, and nothing would mend that. False: the window has
 * none. */
static bool find_page(const struct fold_window *window, uint32_t page, uint32_t i,
                      uint32_t *ret) {
    *ret = i + 1;
    if (i + 1 < window->count && window->pages[i + 1] == page && window->newest[i + 1])
        return true;
    for (*ret = window->count; (*ret)-- > 0;) {
        if (window->pages[*ret] == page) return true;
    }
    return false;
}

static void add_to_run(const struct fold_window *window, struct fold_run *run, uint32_t i) {
    run->pages[run->count] = frame_of(window, i) + FRAME_HEADER_BYTES;
    run->frames[run->count++] = (unsigned char)i;
}

bool fold_window_run(struct fold_window *window, const void *bytes, sqlite3_int64 at,
                     struct fold_run *ret) {
    bool given = window->given_to && window->given_to == bytes;
    window->given_to = NULL;
    if (!given || !has_frame(window, window->last)) return false;
    uint32_t i = window->last - window->first, page = window->pages[i];
    if (at != (sqlite3_int64)(page - 1) * FOLD_PAGE_BYTES) return false;
    ret->count = 0;
    ret->room = window->room;
    if (window->written[i]) return true;
    do {
        add_to_run(window, ret, i);
    } while (ret->count < FOLD_WINDOW_FRAMES && find_page(window, ++page, i, &i));
    return true;
}

void fold_window_written(struct fold_window *window, const struct fold_run *run) {
    for (size_t i = 0; i < run->count; i++) window->written[run->frames[i]] = true;
}
