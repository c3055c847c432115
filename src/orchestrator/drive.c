#include "orchestrator/drive.h"

#include "agent/converse.h"
#include "agent/kind.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define PAUSE_MS 200
#define PAUSE_MAX_MS 5000
#define FAKE_PREFIX "Fake runtime reply: "
/* Targets whose failures are known; beyond them the oldest are forgotten all at once. */
#define FAILED_MAX 4096

struct failures {
    unsigned count;
    uint64_t until_ms; /* no turn goes there before */
};

struct driver {
    struct driver_options options;
    struct map *failed; /* address to struct failures */
};

struct drive {
    struct driver *driver;
    const struct converse_question *question;
    const struct converse_sink *sink;
    void *ctx;
    struct runtimes_need *need;
    struct converse_turn *turn; /* NULL: not asked yet, or the fake runtime */
    struct converse_target target;
    struct text address;
    struct timer timer;   /* after failures; or the fake runtime's next word */
    struct str fake_rest; /* of the message, to be said */
    bool fake_began, fake_greeted;
    bool paused;
};

/* --- failures --------------------------------------------------------------------------------- */

uint64_t drive_pause_ms(unsigned failures, uint64_t random) {
    if (failures == 0) return 0;
    uint64_t pause = failures > 5 ? PAUSE_MAX_MS : (uint64_t)PAUSE_MS << (failures - 1);
    if (pause > PAUSE_MAX_MS) pause = PAUSE_MAX_MS;
    return pause - pause / 4 + random % (pause / 2 + 1);
}

static void forget_all(struct driver *driver) {
    size_t cursor = 0;
    struct str key;
    void *value;
    while (map_next(driver->failed, &cursor, &key, &value)) free(value);
    map_free(driver->failed);
    driver->failed = map_new();
}

static void remember_failure(struct driver *driver, struct str address) {
    struct failures *failures = map_find(driver->failed, address);
    if (!failures) {
        if (map_count(driver->failed) >= FAILED_MAX) forget_all(driver);
        failures = MEM_NEW(struct failures);
        (void)map_put(driver->failed, address, failures);
    }
    failures->count++;
    failures->until_ms =
        loop_now_ms(driver->options.loop) +
        drive_pause_ms(failures->count, (uint64_t)clock_unix_us() * 2654435761u);
}

static uint64_t wait_ms(const struct driver *driver, struct str address) {
    const struct failures *failures = map_find(driver->failed, address);
    uint64_t now = loop_now_ms(driver->options.loop);
    return failures && failures->until_ms > now ? failures->until_ms - now : 0;
}

/* --- the end ------------------------------------------------------------------------------ */

static void drive_free(struct drive *drive) {
    timer_stop(&drive->timer);
    runtimes_leave(drive->need);
    text_done(&drive->address);
    free(drive);
}

static void drive_fail(struct drive *drive, const struct converse_failure *failure) {
    const struct converse_sink *sink = drive->sink;
    void *ctx = drive->ctx;
    drive_free(drive);
    sink->on_failed(failure, ctx);
}

static void give_last(struct drive *drive, const struct converse_event *event) {
    const struct converse_sink *sink = drive->sink;
    void *ctx = drive->ctx;
    drive_free(drive);
    sink->on_event(event, ctx);
}

/* --- a runtime elsewhere ------------------------------------------------------------------------ */

static void drive_on_sent(void *ctx) {
    struct drive *drive = ctx;
    if (drive->sink->on_sent) drive->sink->on_sent(drive->ctx);
}

static void drive_on_event(const struct converse_event *event, void *ctx) {
    struct drive *drive = ctx;
    if (event->kind != CONVERSE_DONE && event->kind != CONVERSE_ERROR) {
        drive->sink->on_event(event, drive->ctx);
        return;
    }
    drive->turn = NULL;
    free(map_remove(drive->driver->failed, text_str(drive->address)));
    give_last(drive, event);
}

static void drive_on_failed(const struct converse_failure *failure, void *ctx) {
    struct drive *drive = ctx;
    drive->turn = NULL;
    log_often(LOG_WARNING, "the runtime at " STR_FMT " %s%s" STR_FMT,
              STR_ARG(text_str(drive->address)), failure->what, failure->why.len ? ": " : "",
              STR_ARG(str_head(failure->why, 300)));
    /* One that was reached may have failed at this turn alone. */
    if (failure->never_seen) remember_failure(drive->driver, text_str(drive->address));
    drive_fail(drive, failure);
}

static const struct converse_sink turn_sink = {
    .on_sent = drive_on_sent, .on_event = drive_on_event, .on_failed = drive_on_failed};

static void drive_ask(struct drive *drive) {
    drive->turn = converse_turn_start(drive->driver->options.loop, &drive->target,
                                      drive->question, &turn_sink, drive);
}

/* --- the fake runtime ----------------------------------------------------------------------------- */

static void fake_text(struct drive *drive, struct str text) {
    const struct str agent = drive->question->agent;
    const struct converse_event event = {
        .kind = CONVERSE_TEXT, .agent = agent.len ? agent : STR("manager"), .text = text};
    drive->sink->on_event(&event, drive->ctx);
}

/* The next word of the reply with a blank after it; a word is cut where it is very long. */
static void fake_word(struct drive *drive) {
    char room[256];
    struct str rest = drive->fake_rest;
    size_t word = str_find_byte(rest, ' ');
    size_t len = utf8_cut(str_head(rest, word), sizeof(room) - 1);
    bool whole = len == word;
    memcpy(room, rest.at, len);
    room[len] = ' ';
    drive->fake_rest = str_skip(rest, whole ? len + 1 : len);
    fake_text(drive, str_of(room, len + (whole ? 1 : 0)));
}

/* A part of it in each turn of the loop. What it calls may cancel the drive, so that comes
 * last. */
static void fake_go_on(struct drive *drive) {
    static const struct converse_event done = {.kind = CONVERSE_DONE,
                                               .model = STR_INIT("fake")};
    if (drive->paused) return;
    timer_start(&drive->timer, 0);
    if (!drive->fake_began) {
        drive->fake_began = true;
        drive->fake_rest = drive->question->message;
        if (drive->sink->on_sent) drive->sink->on_sent(drive->ctx);
    } else if (!drive->fake_greeted) {
        drive->fake_greeted = true;
        fake_text(drive, STR(FAKE_PREFIX));
    } else if (drive->fake_rest.len) {
        fake_word(drive);
    } else {
        give_last(drive, &done);
    }
}

/* --- start and cancel ------------------------------------------------------------------------------ */

static void drive_on_timer(void *ctx) {
    struct drive *drive = ctx;
    if (drive->address.len)
        drive_ask(drive);
    else
        fake_go_on(drive);
}

static void drive_on_found(struct str address, const struct err *failed, void *ctx) {
    struct drive *drive = ctx;
    struct converse_failure failure = {
        .code = ERR_UNAVAILABLE, .reason = DRIVE_STARTING, .what = "", .never_seen = true};
    struct err e;
    if (failed) {
        failure.what = "does not serve";
        failure.why = err_text(failed);
        drive_fail(drive, &failure);
        return;
    }
    drive->address = text_copy(address);
    drive->target.address = drive->target.name = text_str(drive->address);
    if (address.len && !converse_read_address(drive->target.address, &drive->target.host,
                                              &drive->target.port, &e)) {
        failure.reason = AGENT_UNREACHABLE;
        failure.what = "has no address";
        failure.why = err_text(&e);
        drive_fail(drive, &failure);
        return;
    }
    uint64_t in_ms = wait_ms(drive->driver, address);
    if (in_ms)
        log_often(LOG_INFO, "the runtime at " STR_FMT " could not be reached and is left alone",
                  STR_ARG(text_str(drive->address)));
    timer_start(&drive->timer, in_ms);
}

struct drive *drive_start(struct driver *driver, const struct converse_question *question,
                          const struct converse_sink *sink, void *ctx) {
    const struct driver_options *options = &driver->options;
    struct drive *drive = MEM_NEW(struct drive);
    *drive = (struct drive){.driver = driver, .question = question, .sink = sink, .ctx = ctx};
    drive->target = (struct converse_target){.secure = options->secure,
                                             .per_turn = options->per_turn,
                                             .keys = options->keys,
                                             .stall_ms = options->stall_ms,
                                             .http = options->http};
    timer_init(&drive->timer, options->loop, drive_on_timer, drive);
    drive->need = runtimes_need(options->runtimes, question->workspace, question->user,
                                drive_on_found, drive);
    return drive;
}

void drive_pause(struct drive *drive) {
    drive->paused = true;
    if (drive->turn) converse_turn_pause(drive->turn);
}

void drive_resume(struct drive *drive) {
    drive->paused = false;
    if (drive->turn)
        converse_turn_resume(drive->turn);
    else
        timer_start(&drive->timer, 0);
}

void drive_cancel(struct drive *drive) {
    if (drive->turn) converse_turn_cancel(drive->turn);
    drive_free(drive);
}

struct driver *driver_new(const struct driver_options *options) {
    struct driver *driver = MEM_NEW(struct driver);
    driver->options = *options;
    driver->failed = map_new();
    return driver;
}

void driver_free(struct driver *driver) {
    if (!driver) return;
    forget_all(driver);
    map_free(driver->failed);
    free(driver);
}
