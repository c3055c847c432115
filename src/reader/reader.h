/* reader: judges one stream from the client's side.
 *
 * It is fed each frame as it arrives and, once, how the call ended. It says of each frame what
 * it is, and at the end what the stream came to. It never guesses: a stream is complete only if
 * its completing frame has arrived, and what the server did against the contract is noted.
 *
 *     waiting ─▶ reading ─▶ finished ─▶ closed
 *        └──────────┴─ no completing frame ─▶
 *
 * Nothing is filtered: a frame of an unknown event type is a frame. Only frames after the
 * completing one are dropped, and noted once. In mode TERMINAL each frame is a snapshot that
 * replaces the one before; in the modes TERMINAL, EOF and SUBSCRIPTION a `done` means nothing.
 *
 * There is no socket and no clock in here, so a recording can be judged too.
 *
 * Memory   a reader owns an arena during reader_frame() only, and the texts that it keeps.
 * Threads  none; one reader belongs to one stream.
 * Source   contracts/nimi.md 7; contracts/crawbl.md 2; contracts/agentbreeder.md 2; checks.md
 *          groups C and S.
 */
#ifndef WEIR_READER_READER_H
#define WEIR_READER_READER_H

#include "base/buf.h"
#include "base/states.h"
#include "reader/method.h"
#include "reader/stream_outcome.h"
#include "wire/sse.h"

/* What a server does against the contract. Each is noted once; they are bits of a mask. */
enum reader_fault {
    FAULT_MALFORMED = 1 << 0,       /* a frame is not a message of its type */
    FAULT_AFTER_END = 1 << 1,       /* frames after the completing one; they were dropped */
    FAULT_FIRST_NUMBER = 1 << 2,    /* the numbers do not start where they must */
    FAULT_GAP = 1 << 3,             /* a number is missing */
    FAULT_NUMBER_ORDER = 1 << 4,    /* a number does not rise */
    FAULT_DISAGREES = 1 << 5,       /* a frame contradicts itself: type, payload, status */
    FAULT_NO_END = 1 << 6,          /* OK, or the end of the body, without a completing frame */
    FAULT_ERROR_AFTER_END = 1 << 7, /* the completing frame, then an error status */
    FAULT_NOT_CLOSED = 1 << 8,      /* the completing frame, and then the call stayed open */
    FAULT_SUBSCRIPTION_OK = 1 << 9, /* a subscription closed with OK, which none promises */
    FAULT_VERSION = 1 << 10,        /* the contract version is missing or not ours */
    FAULT_COUNT = 11,               /* of the bits above */
};

/* The longest reason, and the longest text about it, that are kept. */
#define READER_REASON_MAX_BYTES 128
#define READER_MESSAGE_MAX_BYTES (4 * KIB)

enum reader_state {
    READER_WAITING, /* no frame so far */
    READER_READING,
    READER_FINISHED, /* the completing frame has arrived */
    READER_CLOSED,
    READER_STATE_COUNT,
};

struct reader {
    const struct reader_method *method;
    enum reader_state state;
    enum stream_outcome_last last;
    bool resumed;      /* the caller asked for what follows a number: any may come first */
    size_t turns;      /* READER_CONVERSE: turns that are still to end */
    bool failed;       /* READER_CONVERSE, READER_TURN: a failure was reported before the end */
    uint64_t number;   /* of the newest frame that has one */
    uint64_t numbered; /* frames that had one */
    uint64_t missing;  /* numbers that were left out */
    uint64_t frames;   /* that were not dropped */
    unsigned faults;   /* bits of enum reader_fault */
    int reason_code;   /* a ReasonCode, or 0 */
    struct buf reason; /* its name, or the code that the contract uses; may be empty */
    struct buf message; /* for a person; may be empty */
    bool stated;        /* the server itself says whether a later try can help ... */
    bool retryable;     /* ... and this is what it says */
};

/* What one frame is. Views into the frame, or into `arena`. */
struct reader_frame {
    bool dropped;   /* it came after the completing frame: do not hand it out */
    bool last;      /* it is the completing frame */
    bool turn_over; /* READER_CONVERSE: it ends one of the turns */
    bool has_number;
    uint64_t number;
    uint64_t missing; /* numbers left out right before it */
    unsigned faults;  /* noted with this frame, each once per stream */
    struct str text;  /* the piece of answer text that it carries; empty: none */
};

/* turns  for READER_CONVERSE: how many requests the caller sends, at least 1 */
void reader_init(struct reader *reader, const struct reader_method *method, size_t turns);
void reader_done(struct reader *reader);

/* A message of a gRPC stream. What *ret shows is in the frame or in the arena. */
void reader_message(struct reader *reader, struct str message, struct arena *arena,
                    struct reader_frame *ret);

/* An event of an HTTP stream. */
void reader_event(struct reader *reader, const struct sse_event *event, struct arena *arena,
                  struct reader_frame *ret);

/* Note a fault that only the transport can see. True: it was not noted before. */
bool reader_note(struct reader *reader, enum reader_fault fault);

/* The reason that a refusal carries: the status message of a gRPC call as the servers of this
 * contract write it (JSON, a bare name, or text), and its details (google.rpc.Status), which
 * count more. Call them before reader_close(). */
void reader_status_message(struct reader *reader, struct str message);
void reader_status_details(struct reader *reader, struct str details);

/* The same for an HTTP answer that is no stream. Returns the code for struct reader_end. */
enum err_code reader_http_refusal(struct reader *reader, unsigned status, struct str body);

/* How the call ended. */
struct reader_end {
    enum err_code code;
    bool from_server, never_seen; /* as in struct grpc_call_end */
    bool by_us;                   /* we cancelled it before the server ended it */
    bool open;                    /* it was not closed yet: we stop reading after the end */
};

/* Judge the stream. Once, and nothing follows. */
struct stream_outcome_advice reader_close(struct reader *reader, const struct reader_end *end);

struct str reader_fault_name(enum reader_fault fault); /* "after_end" */
/* A sentence about the server, without a full stop. */
struct str reader_fault_meaning(enum reader_fault fault);

/* Whether this reason says that a later try can succeed. False: it does not say so. */
bool reader_reason_can_help(struct str reason, int reason_code);

extern const struct state reader_states[READER_STATE_COUNT];

#endif
