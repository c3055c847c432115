/* method: the streams that a reader knows.
 *
 * One row per server stream of the contracts that weir serves: its path, how it closes, how its
 * frames are read and numbered, and where the state can be fetched after events were missed. A
 * stream that has no row is read by the mode that its caller names, and its frames are bytes.
 *
 * Memory   constant.
 * Threads  any.
 * Source   contracts/nimi.md 1.1, 7.2, last paragraphs; contracts/crawbl.md 2; contracts/agentbreeder.md 2.
 */
#ifndef WEIR_READER_METHOD_H
#define WEIR_READER_METHOD_H

#include "stream/close.h"
#include "wire/pb.h"

/* How a frame says what it is. */
enum reader_kind {
    READER_PLAIN,    /* it does not: any frame is data, and may have a number */
    READER_SCENARIO, /* StreamScenarioEvent: COMPLETED, FAILED, or frame.done */
    READER_JOB,      /* ScenarioJobEvent: by event type and by the status of its snapshot */
    READER_WORKFLOW, /* WorkflowEvent: by event type */
    READER_EXPORT,   /* AuditExportChunk: eof */
    READER_CONVERSE, /* ConverseEvent: each turn ends with done; "ERROR:" is a failure */
    READER_TURN,     /* server-sent events of /stream: [DONE], and `error` before it */
    READER_RUN,      /* server-sent events of a run: done, failed, cancelled */
    READER_KIND_COUNT,
};

/* How frames are numbered. */
enum reader_numbers {
    NUMBERS_NONE,
    NUMBERS_FROM_ONE,      /* 1, 2, 3 ...: anything else is a fault of the server */
    NUMBERS_FROM_ONE_GAPS, /* from 1; a gap means that events were dropped */
    NUMBERS_FROM_ZERO,     /* 0, 1, 2 ...: a gap makes the export invalid */
    NUMBERS_RISING,        /* from anywhere; a gap means that events were lost */
    /* The same after a first frame, whose number is above those of the frames that follow it:
     * a snapshot of now, then what led to it. */
    NUMBERS_AFTER_SNAPSHOT,
    NUMBERS_COUNT,
};

struct reader_method {
    struct str path; /* "/package.Service/Method"; or "/stream", "/weir/v1/runs/{id}/events" */
    enum close_mode mode;
    enum reader_kind kind;
    enum reader_numbers numbers;
    const struct pb_message
        *request; /* NULL: its messages are not known here, or not protobuf */
    const struct pb_message *frame;
    uint32_t number_field; /* where frame is NULL: the field that holds the number, or 0 */
    const char *snapshot;  /* the method that tells the state, or NULL */
};

/* By its path, or by its last part ("StreamScenario"). A run's events are found by the path of
 * one run, with or without "/weir/v1/". NULL: unknown. */
const struct reader_method *reader_method_find(struct str name);

/* The row at `index`, in the order of the table; NULL after the last. */
const struct reader_method *reader_method_at(size_t index);

/* Whether its frames are server-sent events, over plain HTTP; else it is gRPC. */
bool reader_kind_is_http(enum reader_kind kind);

#endif
