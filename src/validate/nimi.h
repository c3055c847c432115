/* nimi: what the checks of nimi.runtime.v1 share.
 *
 * A scene is one call: its request, what came back, and what the judging library (reader.h) says
 * of it. It is played when the first check asks for it, and kept for all others. Two scenes that
 * got no end in time are enough: the others are not played then.
 *
 *     request ─▶ talk ─▶ each frame, then the end ─▶ reader ─▶ outcome, faults, reason
 *
 * Checks of how a stream closes ask the reader's verdict; they decide nothing about it themselves.
 *
 * Memory   the world owns the scenes until nimi_close().
 * Threads  the main thread; nimi_scene() blocks.
 * Source   contracts/nimi.md 1.1, 2, 3.1, 4, 5.1, 5.3, 6.6, 7.2, 11.
 */
#ifndef WEIR_VALIDATE_NIMI_H
#define WEIR_VALIDATE_NIMI_H

#include "proto/nimi.pb.h"
#include "reader/reader.h"
#include "validate/talk.h"
#include "validate/validate.h"

enum nimi_scene_id {
    NIMI_PROBE, /* grpc.health.v1, without the envelope */
    NIMI_HEALTH,
    NIMI_NO_ENVELOPE,
    NIMI_OTHER_MAJOR,
    NIMI_LONG_HEADER,
    NIMI_TEXT, /* a stream of text */
    NIMI_EXECUTE,
    NIMI_FAILS, /* a stream with the error input */
    NIMI_NO_MODEL,
    NIMI_NO_INPUT,
    NIMI_NO_APP,
    NIMI_OTHER_APP,
    NIMI_NO_CONNECTOR,
    NIMI_SUBMIT,
    NIMI_JOB,      /* the events of that job */
    NIMI_JOB_LATE, /* ... once more, after it is over */
    NIMI_JOB_SNAPSHOT,
    NIMI_JOB_FOREIGN, /* ... by another app */
    NIMI_JOB_UNKNOWN,
    NIMI_EXPORT,
    NIMI_WATCH, /* health events, until the first one */
    NIMI_STOP_WATCH,
    NIMI_STOP_TEXT,
    NIMI_SCENE_COUNT,
};

struct nimi_scene {
    struct talk talk;
    const struct pb_message *frame; /* their type */
    const char *frames;
    size_t count;         /* frames before the first that cannot be decoded */
    struct reader reader; /* closed */
    struct stream_outcome_advice advice;
    bool not_played;
};

struct nimi {
    struct target *target;
    const struct validate_options *options;
    struct buf message, error_message, model; /* text */
    struct buf job;                           /* the id of the one that was submitted */
    struct nimi_scene scenes[NIMI_SCENE_COUNT];
    bool played[NIMI_SCENE_COUNT];
    unsigned silent, calls;
    size_t frames_before_stop; /* of NIMI_STOP_WATCH */
    bool text_over;            /* NIMI_STOP_TEXT had ended by itself */
    char run[16];              /* makes the keys of this validation its own */
};

void *nimi_open(struct target *target, const struct validate_options *options);
void nimi_close(void *world);
bool nimi_speaks(struct target *target, const struct validate_options *options);

struct nimi *nimi_of(const struct judge *judge);
const struct nimi_scene *nimi_scene(struct judge *judge, enum nimi_scene_id id);

/* In two steps, for calls that go on: open it, end it with what came until then. */
struct nimi_scene *nimi_scene_begin(struct judge *judge, enum nimi_scene_id id);
void nimi_scene_end(struct judge *judge, enum nimi_scene_id id);

/* Open another NIMI_WATCH and cancel it at its first frame. False: there was none. */
bool nimi_watch_once(struct judge *judge);

/* A frame of a stream, or the reply of a unary call, as the struct of its type. */
const void *nimi_frame(const struct nimi_scene *scene, size_t index);

/* Enough for talk_wait(): one message. */
bool nimi_has_frame(const struct talk *talk, void *ctx);

/* --- judging. Each breaks or skips the check and returns false, or returns true. ----------------- */

/* "OK, completed", for people. */
#define NIMI_END_BYTES 320
const char *nimi_end_of(const struct nimi_scene *scene, char room[NIMI_END_BYTES]);

/* It was answered with OK and a message of the right type. */
bool nimi_judge_reply(struct judge *judge, const struct nimi_scene *scene, const char *what);

/* The stream ended in time, and the reader notes none of these faults. */
bool nimi_judge_faults(struct judge *judge, const struct nimi_scene *scene, unsigned faults);

/* It was refused with this status before any frame. */
bool nimi_judge_refused(struct judge *judge, const struct nimi_scene *scene, enum err_code code,
                        const char *what);

/* Whether a stream of text is answered; else the check is skipped, because DONE-01 says so. */
bool nimi_answers(struct judge *judge);

/* nimi_errors.c */
check_fn check_envelope_missing, check_envelope_major, check_envelope_long,
    check_refusal_details, check_refusal_message, check_refusal_agrees, check_refusal_model,
    check_refusal_input, check_refusal_app, check_refusal_other_app, check_refusal_connector;

/* nimi_checks.c */
check_fn check_nimi_probe, check_nimi_health, check_nimi_version, check_done_completes,
    check_done_started, check_done_numbers, check_done_grain, check_done_empty, check_done_last,
    check_done_usage, check_done_agrees, check_done_frame, check_done_failed,
    check_done_failed_usage, check_done_execute;

/* nimi_streams.c */
check_fn check_job_submit, check_job_ends, check_job_numbers, check_job_agrees, check_job_late,
    check_job_snapshot, check_job_foreign, check_job_unknown, check_export_ends,
    check_export_last, check_export_numbers, check_watch_first, check_watch_open,
    check_watch_left, check_stop_watch, check_stop_text;

#endif
