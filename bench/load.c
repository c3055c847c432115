#include "load.h"

#include "proc.h"
#include "samples.h"

#include "base/clock.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SECOND_US 1000000u
#define WARM_US 500000u
#define SETTLE_US 1500000u
/* By the rules of the figures that are wanted (docs/performance.md); a short run waits less. */
#define READY_US 10000000u /* after the start */
#define QUIET_US 30000000u /* after the turn of an idle stream */
#define LEFT_US 3000000u   /* after a burst */
#define LEFT_LONG_US 20000000u
#define SHORT_PART 10
#define WAVE 32

/* ---- a window of time, and what it cost ---- */

struct reading {
    uint64_t now_us, server_ns, driver_ns, machine_ns;
    uint64_t events, turns;
    unsigned server_threads;
    struct fleet_traffic traffic;
};

static bool reading_take(const struct fleet *fleet, pid_t server, struct reading *ret,
                         struct err *e) {
    *ret = (struct reading){.now_us = clock_mono_us(),
                            .events = fleet->events,
                            .turns = fleet->turns,
                            .traffic = fleet_traffic(fleet)};
    return proc_cpu_ns(server, &ret->server_ns, &ret->server_threads, e) &&
           proc_cpu_ns(getpid(), &ret->driver_ns, NULL, e) &&
           proc_machine_busy_ns(&ret->machine_ns, e);
}

static double per(uint64_t amount, uint64_t count) {
    return count ? (double)amount / (double)count : 0;
}

/* Members that every window prints: rates, CPU, and whether somebody else was busy. */
static void print_window(const struct reading *from, const struct reading *to) {
    double seconds = (double)(to->now_us - from->now_us) / SECOND_US;
    uint64_t events = to->events - from->events;
    uint64_t server_ns = to->server_ns - from->server_ns;
    uint64_t driver_ns = to->driver_ns - from->driver_ns;
    uint64_t machine_ns = to->machine_ns - from->machine_ns;
    double others = (double)machine_ns - (double)server_ns - (double)driver_ns;
    uint64_t frames = to->traffic.frames - from->traffic.frames;
    uint64_t reads = to->traffic.reads - from->traffic.reads;
    printf("\"seconds\": %.3f, \"events\": %" PRIu64 ", \"events_per_second\": %.0f, ", seconds,
           events, (double)events / seconds);
    printf("\"cpu_us_per_event\": %.4f, \"server_cpu\": %.3f, \"server_threads\": %u, ",
           per(server_ns, events) / 1000, (double)server_ns / seconds / 1e9,
           to->server_threads);
    printf("\"driver_cpu\": %.3f, \"others_cpu\": %.3f, ", (double)driver_ns / seconds / 1e9,
           others > 0 ? others / seconds / 1e9 : 0);
    printf("\"events_per_frame\": %.2f, \"frames_per_read\": %.2f", per(events, frames),
           per(frames, reads));
}

static void print_percentiles(const char *name, struct samples *samples) {
    samples_sort(samples);
    printf(", \"%s\": {\"p50\": %u, \"p99\": %u, \"p999\": %u, \"max\": %u}", name,
           samples_at(samples, 500), samples_at(samples, 990), samples_at(samples, 999),
           samples_at(samples, 1000));
}

/* ---- turns ---- */

struct turns {
    struct samples latency_us;
    bool measuring, stopping;
    size_t open;
};

static void turns_on_event(struct seat *seat, enum turn_event event, uint64_t now_us,
                           void *ctx) {
    struct turns *turns = ctx;
    if (event != TURN_DONE) return;
    if (turns->measuring) samples_add(&turns->latency_us, (uint32_t)(now_us - seat->asked_us));
    if (turns->stopping) {
        turns->open--;
        return;
    }
    fleet_ask(seat, 0);
}

static bool poll_until(struct fleet *fleet, uint64_t until_us, struct err *e) {
    for (uint64_t now_us; (now_us = clock_mono_us()) < until_us;)
        if (!fleet_poll(fleet, until_us - now_us, e)) return false;
    return true;
}

static bool turns_measure(struct fleet *fleet, struct turns *turns,
                          const struct load_options *options, struct reading *from,
                          struct reading *to, struct err *e) {
    for (size_t i = 0; i < fleet->seat_count; i++) fleet_ask(&fleet->seats[i], 0);
    turns->open = fleet->seat_count;
    if (!poll_until(fleet, clock_mono_us() + WARM_US, e)) return false;
    if (!reading_take(fleet, options->server, from, e)) return false;
    turns->measuring = true;
    if (!poll_until(fleet, from->now_us + (uint64_t)options->seconds * SECOND_US, e))
        return false;
    turns->measuring = false;
    if (!reading_take(fleet, options->server, to, e)) return false;
    turns->stopping = true;
    while (turns->open)
        if (!fleet_poll(fleet, SECOND_US, e)) return false;
    return true;
}

bool load_turns(const struct load_options *options, struct err *e) {
    struct fleet fleet;
    struct turns turns = {0};
    struct reading from, to;
    if (!fleet_open(&fleet, &options->fleet, e)) return false;
    fleet.on_event = turns_on_event;
    fleet.ctx = &turns;
    if (!turns_measure(&fleet, &turns, options, &from, &to, e)) return false;
    if (!fleet_close(&fleet, e)) return false;

    double seconds = (double)(to.now_us - from.now_us) / SECOND_US;
    printf("{\"mode\": \"turns\", \"connections\": %zu, \"streams\": %zu, ",
           options->fleet.connections, options->fleet.streams);
    printf("\"turns\": %" PRIu64 ", \"turns_per_second\": %.1f, ", to.turns - from.turns,
           (double)(to.turns - from.turns) / seconds);
    print_window(&from, &to);
    print_percentiles("turn_us", &turns.latency_us);
    printf("}\n");
    samples_done(&turns.latency_us);
    return true;
}

/* ---- paced ---- */

struct paced {
    uint64_t start_us;
    unsigned chunks;
    int64_t *offsets_us;   /* of each chunk: arrival - start - n * pace; seat by seat */
    struct samples end_us; /* from the last chunk to the end */
};

static int64_t due_us(unsigned chunk) {
    return (int64_t)chunk * TURN_PACE_US;
}

static void paced_on_event(struct seat *seat, enum turn_event event, uint64_t now_us,
                           void *ctx) {
    struct paced *paced = ctx;
    if (event == TURN_USAGE) return;
    unsigned number = seat->turn.chunks - 1;
    int64_t *offset_us = &paced->offsets_us[seat->index * paced->chunks + number];
    int64_t late_us = (int64_t)(now_us - paced->start_us) - due_us(number);
    if (event == TURN_CHUNK) *offset_us = late_us;
    if (event == TURN_DONE) samples_add(&paced->end_us, (uint32_t)(late_us - *offset_us));
}

static int by_time(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

/* Random moments of the first second, in order, the same ones in every run. */
static uint64_t *random_starts(size_t count, uint64_t start_us) {
    uint64_t *starts = mem_zero(count, sizeof(*starts));
    uint64_t state = UINT64_C(88172645463325252);
    for (size_t i = 0; i < count; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        starts[i] = start_us + state % SECOND_US;
    }
    qsort(starts, count, sizeof(*starts), by_time);
    return starts;
}

static void ask_at_once(struct fleet *fleet, unsigned chunks) {
    for (size_t i = 0; i < fleet->seat_count; i++) fleet_ask(&fleet->seats[i], chunks);
}

/* Ask on every seat at its moment. Neighbours in time sit on different connections. */
static bool ask_over_a_second(struct fleet *fleet, uint64_t start_us, unsigned chunks,
                              struct err *e) {
    uint64_t *starts = random_starts(fleet->seat_count, start_us);
    size_t streams = fleet->seat_count / fleet->connection_count;
    bool ok = true;
    for (size_t i = 0; ok && i < fleet->seat_count; i++) {
        ok = poll_until(fleet, starts[i], e);
        size_t seat = i % fleet->connection_count * streams + i / fleet->connection_count;
        if (ok) fleet_ask(&fleet->seats[seat], chunks);
    }
    free(starts);
    return ok;
}

/* The steady part: after the last stream began, before the first one is due to end. */
static bool paced_measure(struct fleet *fleet, const struct paced *paced,
                          const struct load_options *options, struct reading *from,
                          struct reading *to, struct err *e) {
    uint64_t steady_us = paced->start_us + SECOND_US + SECOND_US / 5;
    uint64_t end_us = paced->start_us + (uint64_t)(paced->chunks - 2) * TURN_PACE_US;
    if (end_us <= steady_us)
        return err_set(e, ERR_INVALID_ARGUMENT, "too few chunks for a steady part");
    if (options->at_once) ask_at_once(fleet, paced->chunks);
    if (!options->at_once && !ask_over_a_second(fleet, paced->start_us, paced->chunks, e))
        return false;
    if (!poll_until(fleet, steady_us, e)) return false;
    if (!reading_take(fleet, options->server, from, e)) return false;
    if (!poll_until(fleet, end_us, e)) return false;
    if (!reading_take(fleet, options->server, to, e)) return false;
    while (fleet->turns < fleet->seat_count)
        if (!fleet_poll(fleet, SECOND_US, e)) return false;
    return true;
}

/* How much later than base + n * pace each chunk came; earlier counts as 0. The base is the
 * first chunk, or, stricter, the chunk that came earliest against its schedule. */
enum base { BASE_FIRST, BASE_EARLIEST };

static void lateness(const struct paced *paced, size_t seats, enum base base,
                     struct samples *ret) {
    for (size_t seat = 0; seat < seats; seat++) {
        const int64_t *offsets = paced->offsets_us + seat * paced->chunks;
        int64_t zero = offsets[0];
        for (unsigned n = 1; base == BASE_EARLIEST && n < paced->chunks; n++)
            if (offsets[n] < zero) zero = offsets[n];
        for (unsigned n = 0; n < paced->chunks; n++)
            samples_add(ret, offsets[n] > zero ? (uint32_t)(offsets[n] - zero) : 0);
    }
}

static void paced_print(const struct load_options *options, struct paced *paced,
                        const struct reading *from, const struct reading *to) {
    size_t seats = options->fleet.connections * options->fleet.streams;
    double offered = (double)seats * SECOND_US / TURN_PACE_US;
    struct samples late = {0}, strict = {0};
    lateness(paced, seats, BASE_FIRST, &late);
    lateness(paced, seats, BASE_EARLIEST, &strict);
    printf("{\"mode\": \"paced\", \"connections\": %zu, \"streams\": %zu, \"chunks\": %u, ",
           options->fleet.connections, options->fleet.streams, paced->chunks);
    printf("\"offered_per_second\": %.0f, ", offered);
    print_window(from, to);
    print_percentiles("late_us", &late);
    print_percentiles("late_strict_us", &strict);
    print_percentiles("end_us", &paced->end_us);
    printf("}\n");
    samples_done(&late);
    samples_done(&strict);
}

bool load_paced(const struct load_options *options, struct err *e) {
    struct fleet fleet;
    struct reading from, to;
    if (!fleet_open(&fleet, &options->fleet, e)) return false;
    struct paced paced = {.start_us = clock_mono_us(), .chunks = options->chunks};
    paced.offsets_us = mem_zero(fleet.seat_count * paced.chunks, sizeof(*paced.offsets_us));
    fleet.on_event = paced_on_event;
    fleet.ctx = &paced;
    if (!paced_measure(&fleet, &paced, options, &from, &to, e)) return false;
    if (!fleet_close(&fleet, e)) return false;
    paced_print(options, &paced, &from, &to);
    samples_done(&paced.end_us);
    free(paced.offsets_us);
    return true;
}

/* ---- memory ---- */

static bool wait_and_read(struct fleet *fleet, uint64_t wait_us, pid_t server,
                          struct proc_memory *ret, struct err *e) {
    return poll_until(fleet, clock_mono_us() + wait_us, e) && proc_memory(server, ret, e);
}

/* A turn on every seat, `at_once` of them at the same time. */
static bool all_seats_take_a_turn(struct fleet *fleet, size_t at_once, struct err *e) {
    uint64_t before = fleet->turns;
    for (size_t i = 0; i < fleet->seat_count; i++) {
        fleet_ask(&fleet->seats[i], 0);
        while (i + 1 - (fleet->turns - before) >= at_once)
            if (!fleet_poll(fleet, SECOND_US, e)) return false;
    }
    while (fleet->turns - before < fleet->seat_count)
        if (!fleet_poll(fleet, SECOND_US, e)) return false;
    return true;
}

static void print_held(const char *name, const struct proc_memory *now,
                       const struct proc_memory *before, size_t streams) {
    printf(", \"%s\": {\"rss_kb\": %" PRIu64 ", \"pss_kb\": %" PRIu64
           ", \"bytes_per_stream\": %.0f}",
           name, now->rss_kb, now->pss_kb,
           ((double)now->rss_kb - (double)before->rss_kb) * 1024 / (double)streams);
}

bool load_memory(const struct load_options *options, struct err *e) {
    struct fleet fleet;
    struct proc_memory idle, open, quiet, busy, right_after, after, later;
    pid_t server = options->server;
    unsigned part = options->brief ? SHORT_PART : 1;
    usleep(READY_US / part);
    if (!proc_memory(server, &idle, e)) return false;
    if (!fleet_open(&fleet, &options->fleet, e)) return false;
    if (!all_seats_take_a_turn(&fleet, WAVE, e)) return false;
    if (!wait_and_read(&fleet, SETTLE_US, server, &open, e)) return false;
    if (!wait_and_read(&fleet, QUIET_US / part, server, &quiet, e)) return false;
    busy = quiet;
    size_t streams = fleet.seat_count;
    if (options->chunks) {
        if (!ask_over_a_second(&fleet, clock_mono_us(), options->chunks, e)) return false;
        if (!wait_and_read(&fleet, SETTLE_US, server, &busy, e)) return false;
        while (fleet.turns < 2 * streams)
            if (!fleet_poll(&fleet, SECOND_US, e)) return false;
    }
    if (!all_seats_take_a_turn(&fleet, streams, e)) return false;
    if (!proc_memory(server, &right_after, e)) return false;
    if (!wait_and_read(&fleet, LEFT_US, server, &after, e)) return false;
    if (!wait_and_read(&fleet, LEFT_LONG_US / part, server, &later, e)) return false;
    if (!fleet_close(&fleet, e)) return false;

    printf("{\"mode\": \"memory\", \"connections\": %zu, \"streams\": %zu",
           options->fleet.connections, options->fleet.streams);
    printf(", \"idle\": {\"rss_kb\": %" PRIu64 ", \"pss_kb\": %" PRIu64 "}", idle.rss_kb,
           idle.pss_kb);
    print_held("open_streams", &open, &idle, streams);
    print_held("quiet_streams", &quiet, &idle, streams);
    print_held("paced_streams", &busy, &idle, streams);
    print_held("burst", &right_after, &idle, streams);
    print_held("after_burst", &after, &idle, streams);
    print_held("later", &later, &idle, streams);
    printf(", \"after_burst_to_quiet\": %.3f", (double)after.rss_kb / (double)quiet.rss_kb);
    printf("}\n");
    return true;
}
