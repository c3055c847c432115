#include "server/abuse.h"

#include <nghttp2/nghttp2.h>

#define NEVER UINT64_MAX

#define RESETS_BURST 1000
#define RESETS_PER_S 33
#define CONTINUATIONS_MAX 8
#define SETTINGS_ENTRIES_MAX 32
#define ACKS_MAX 1000

static const struct budget faults_allowed = {
    .left = RESETS_BURST, .most = RESETS_BURST, .per_s = RESETS_PER_S};
static const struct budget chores_allowed = {.left = 1000, .most = 1000, .per_s = 100};

/* A ping may come this much too early: clients' clocks and the net shake a little. */
#define PING_EARLY_MS 1000
#define PING_STRIKES_MAX 2

#define BOMB_FACTOR 8

void abuse_init(struct abuse *abuse) {
    *abuse =
        (struct abuse){.faults = faults_allowed, .chores = chores_allowed, .ping_ms = NEVER};
}

void abuse_limit(nghttp2_option *options) {
    nghttp2_option_set_max_outbound_ack(options, ACKS_MAX);
    nghttp2_option_set_max_settings(options, SETTINGS_ENTRIES_MAX);
    nghttp2_option_set_max_continuations(options, CONTINUATIONS_MAX);
    nghttp2_option_set_stream_reset_rate_limit(options, RESETS_BURST, RESETS_PER_S);
}

static bool spend(struct budget *budget, uint64_t now_ms) {
    uint64_t refill = (now_ms - budget->since_ms) * budget->per_s / 1000;
    if (refill) {
        budget->left =
            budget->left + refill < budget->most ? budget->left + refill : budget->most;
        budget->since_ms = now_ms;
    }
    if (budget->left == 0) return false;
    budget->left--;
    return true;
}

bool abuse_fault(struct abuse *abuse, uint64_t now_ms) {
    return spend(&abuse->faults, now_ms);
}

bool abuse_chore(struct abuse *abuse, uint64_t now_ms) {
    return spend(&abuse->chores, now_ms);
}

bool abuse_ping(struct abuse *abuse, uint64_t now_ms, uint64_t apart_ms) {
    bool too_soon =
        abuse->ping_ms != NEVER && now_ms - abuse->ping_ms + PING_EARLY_MS < apart_ms;
    abuse->ping_ms = now_ms;
    if (too_soon) abuse->ping_strikes++;
    return !too_soon || abuse->ping_strikes < PING_STRIKES_MAX;
}

void abuse_heard(struct abuse *abuse) {
    abuse->ping_ms = NEVER;
}

void abuse_said(struct abuse *abuse) {
    abuse->ping_ms = NEVER;
    abuse->ping_strikes = 0;
}

void abuse_section(struct abuse *abuse) {
    abuse->section_bytes = 0;
}

bool abuse_field(struct abuse *abuse, size_t bytes, size_t max_bytes) {
    abuse->section_bytes += bytes;
    return abuse->section_bytes <= BOMB_FACTOR * max_bytes;
}

void abuse_reset(struct abuse *abuse, int32_t stream_id) {
    int32_t *place = &abuse->resets[abuse->resets_at++ % ABUSE_RESETS_KEPT];
    if (*place > abuse->lost) abuse->lost = *place;
    *place = stream_id;
}

bool abuse_was_reset(const struct abuse *abuse, int32_t stream_id) {
    if (stream_id <= abuse->lost) return true;
    for (size_t i = 0; i < ABUSE_RESETS_KEPT; i++) {
        if (abuse->resets[i] == stream_id) return true;
    }
    return false;
}
