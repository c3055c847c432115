#include "server/abuse.h"

#include <nghttp2/nghttp2.h>

#define NEVER UINT64_MAX

/* Faults within ABUSE_WINDOW_S; this many end the connection (row H3). */
#define FAULTS_MAX 200

#define RESETS_BURST 1000
#define RESETS_PER_S 33
#define CONTINUATIONS_MAX 8
#define SETTINGS_ENTRIES_MAX 32
#define ACKS_MAX 1000

static const struct abuse_budget refusals_allowed = {
    .left = RESETS_BURST, .most = RESETS_BURST, .per_s = RESETS_PER_S};
static const struct abuse_budget chores_allowed = {.left = 1000, .most = 1000, .per_s = 100};

/* A ping may come this much too early, to allow for clock error and network jitter. */
#define PING_EARLY_MS 1000
#define PING_STRIKES_MAX 2

#define BOMB_FACTOR 8

void abuse_init(struct abuse *abuse) {
    *abuse = (struct abuse){
        .refusals = refusals_allowed, .chores = chores_allowed, .ping_ms = NEVER};
}

void abuse_limit(nghttp2_option *options) {
    nghttp2_option_set_max_outbound_ack(options, ACKS_MAX);
    nghttp2_option_set_max_settings(options, SETTINGS_ENTRIES_MAX);
    nghttp2_option_set_max_continuations(options, CONTINUATIONS_MAX);
    nghttp2_option_set_stream_reset_rate_limit(options, RESETS_BURST, RESETS_PER_S);
}

static bool spend(struct abuse_budget *budget, uint64_t now_ms) {
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

bool abuse_refusal(struct abuse *abuse, uint64_t now_ms) {
    return spend(&abuse->refusals, now_ms);
}

/* Clear the seconds that have left the window. */
static void move_window(struct abuse *abuse, uint64_t now_s) {
    uint64_t passed = now_s - abuse->fault_s;
    if (passed > ABUSE_WINDOW_S) passed = ABUSE_WINDOW_S;
    for (uint64_t i = 0; i < passed; i++) abuse->faults[(now_s - i) % ABUSE_WINDOW_S] = 0;
    abuse->fault_s = now_s;
}

bool abuse_fault(struct abuse *abuse, uint64_t now_ms) {
    uint64_t now_s = now_ms / 1000, sum = 0;
    move_window(abuse, now_s);
    abuse->faults[now_s % ABUSE_WINDOW_S]++;
    for (size_t i = 0; i < ABUSE_WINDOW_S; i++) sum += abuse->faults[i];
    return sum < FAULTS_MAX;
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
