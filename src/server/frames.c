#include "server/frames.h"

#define PRIORITY 2

void frames_init(struct frames *frames) {
    *frames = (struct frames){.left = FRAMES_PREFACE_BYTES};
}

static uint32_t u32(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void pass_over(struct frames *frames, struct str *bytes) {
    size_t len = frames->left < bytes->len ? frames->left : bytes->len;
    frames->left -= (uint32_t)len;
    *bytes = str_skip(*bytes, len);
}

/* Collect `want` bytes of the frame header. False: not all of them are here yet. */
static bool frames_gather(struct frames *frames, size_t want, struct str *bytes) {
    if (frames->have >= want) return true;
    struct str part = str_head(*bytes, want - frames->have);
    if (part.len) memcpy(frames->head + frames->have, part.at, part.len);
    frames->have += (uint8_t)part.len;
    *bytes = str_skip(*bytes, part.len);
    return frames->have == want;
}

bool frames_next(struct frames *frames, struct str *bytes, struct frame_head *ret) {
    const uint8_t *head = frames->head;
    pass_over(frames, bytes);
    if (!frames_gather(frames, FRAMES_HEAD_BYTES, bytes)) return false;
    uint32_t len = u32(head) >> 8;
    size_t more = head[3] == PRIORITY && len >= 4 ? 4 : 0;
    if (!frames_gather(frames, FRAMES_HEAD_BYTES + more, bytes)) return false;
    *ret = (struct frame_head){
        .type = head[3],
        .stream = (int32_t)(u32(head + 5) & 0x7fffffff),
        .first4 = more ? u32(head + FRAMES_HEAD_BYTES) : 0,
    };
    frames->left = len - (uint32_t)more;
    frames->have = 0;
    return true;
}

/* The payload is pairs of a 16-bit name and a 32-bit value. */
void frames_set(char *frame, size_t len, uint16_t setting, uint32_t value) {
    if (len < FRAMES_HEAD_BYTES || frame[3] != FRAMES_SETTINGS) return;
    for (size_t at = FRAMES_HEAD_BYTES; at + 6 <= len; at += 6) {
        const uint8_t *name = (const uint8_t *)frame + at;
        if ((name[0] << 8 | name[1]) != setting) continue;
        for (size_t i = 0; i < 4; i++) frame[at + 2 + i] = (char)(value >> (24 - 8 * i));
    }
}
