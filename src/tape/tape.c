#include "tape/tape.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/secret.h"
#include "base/text.h"
#include "tape/folder.h"
#include "tape/miss.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Limit for one encoded file, and for a request without its secrets. */
#define ENCODED_MAX_BYTES TAPE_FILE_MAX_BYTES
#define REQUEST_MAX_BYTES TAPE_FILE_MAX_BYTES

/* All recordings of one request, in the order in which they were made. */
struct takes {
    struct tape_call *calls;
    size_t count;
    atomic_size_t served;
};

struct tape {
    atomic_uint refs;
    bool plays;
    enum tape_pace pace;
    char *folder;
    struct slots *readers; /* of the folder */
    struct text *secrets;
    struct str *known; /* the same secrets, for the mask */
    struct mask mask;

    _Atomic int64_t stamp; /* of the latest recording */
    atomic_ulong written;
    atomic_bool warned; /* a failed write has been logged */

    uint64_t run;        /* of which recordings are read; 0: of all */
    struct arena *arena; /* holds everything that was read */
    struct map *takes;   /* by kind and request */
};

static struct tape *tape_new(const struct tape_options *options) {
    struct tape *tape = MEM_NEW(struct tape);
    atomic_init(&tape->refs, 1);
    tape->pace = options->pace;
    tape->folder = str_dup(options->folder);
    tape->readers = slots_new(&(struct slots_limits){.all = 1, .queue_max = SIZE_MAX});
    tape->secrets = mem_zero(options->secret_count, sizeof(struct text));
    tape->known = mem_zero(options->secret_count, sizeof(struct str));
    for (size_t i = 0; i < options->secret_count; i++) {
        struct str secret = options->secrets[i];
        if (secret.len < SECRET_PIECE_BYTES) continue;
        size_t at = tape->mask.known_count++;
        tape->secrets[at] = text_copy(secret);
        tape->known[at] = text_str(tape->secrets[at]);
    }
    tape->mask.known = tape->known;
    return tape;
}

static void tape_free(struct tape *tape) {
    struct str key;
    void *value;
    size_t cursor = 0;
    while (tape->takes && map_next(tape->takes, &cursor, &key, &value)) {
        struct takes *take = value;
        free(take->calls);
        free(take);
    }
    map_free(tape->takes);
    arena_free(tape->arena);
    for (size_t i = 0; i < tape->mask.known_count; i++) text_wipe(&tape->secrets[i]);
    free(tape->secrets);
    free(tape->known);
    free(tape->folder);
    slots_free(tape->readers);
    free(tape);
}

struct tape *tape_ref(struct tape *tape) {
    atomic_fetch_add_explicit(&tape->refs, 1, memory_order_relaxed);
    return tape;
}

void tape_unref(struct tape *tape) {
    if (tape && atomic_fetch_sub_explicit(&tape->refs, 1, memory_order_acq_rel) == 1)
        tape_free(tape);
}

struct slots *tape_readers(const struct tape *tape) {
    return tape->readers;
}

bool tape_plays(const struct tape *tape) {
    return tape->plays;
}

enum tape_pace tape_pace(const struct tape *tape) {
    return tape->pace;
}

/* --- recording ---------------------------------------------------------------------------- */

bool tape_record(const struct tape_options *options, struct tape **ret, struct err *e) {
    if (!folder_make(options->folder, e)) return false;
    *ret = tape_new(options);
    return true;
}

/* The agent that made the request, or the tool that was called. */
static struct str who_of(const struct tape_call *call, struct buf *room) {
    struct json name =
        json_find(json_of(call->request), call->kind == TAPE_TOOL ? STR("tool") : STR("agent"));
    json_text(name, room);
    return buf_str(room);
}

static bool write_call(struct tape *tape, const struct tape_call *call, struct err *e) {
    struct buf file, hidden, who;
    buf_init(&file, ENCODED_MAX_BYTES);
    buf_init(&hidden, REQUEST_MAX_BYTES);
    buf_init(&who, KIB);
    bool fits = mask_json(&tape->mask, json_of(call->request), &hidden) &&
                tape_call_encode(call, &tape->mask, &file);
    struct folder_name name = {tape_kind_name(call->kind), who_of(call, &who), buf_str(&hidden),
                               atomic_fetch_add(&tape->written, 1)};
    bool done = fits ? folder_write(tape->folder, &name, buf_str(&file), e)
                     : err_set(e, ERR_TOO_LARGE, "a call is larger than %zu bytes",
                               (size_t)TAPE_FILE_MAX_BYTES);
    buf_done(&file);
    buf_done(&hidden);
    buf_done(&who);
    return done;
}

void tape_warn(struct tape *tape, const struct err *why) {
    if (atomic_exchange(&tape->warned, true)) return;
    log_warning("recording into '%s': %s; turns go on, but this folder lacks calls",
                tape->folder, why->text);
}

bool tape_write(struct tape *tape, const struct tape_call *call, struct err *e) {
    if (write_call(tape, call, e)) return true;
    tape_warn(tape, e);
    return false;
}

int64_t tape_stamp(struct tape *tape) {
    int64_t now = clock_unix_ms() * 1000, last = atomic_load(&tape->stamp), next;
    do {
        next = now > last ? now : last + 1;
    } while (!atomic_compare_exchange_weak(&tape->stamp, &last, next));
    return next;
}

/* --- reading all -------------------------------------------------------------------------- */

static void tape_key_of(enum tape_kind kind, struct str request, struct buf *out) {
    buf_append(out, tape_kind_name(kind));
    buf_append(out, request);
}

/* Whether the text may be a recording of the wanted run: it is decoded only then. */
static bool may_be_wanted(const struct tape *tape, struct str text) {
    char room[24];
    struct buf digits = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    buf_append_u64(&digits, tape->run);
    return !tape->run || str_find(text, buf_str(&digits)) < text.len;
}

static bool tape_is_wanted(const struct tape *tape, const struct tape_call *call) {
    struct buf digits;
    uint64_t run = 0;
    if (!tape->run) return true;
    if (!call->who.len) return false;
    buf_init(&digits, 64);
    json_text(json_find(json_of(call->who), STR("run")), &digits);
    bool wanted = str_to_u64(buf_str(&digits), &run) && run == tape->run;
    buf_done(&digits);
    return wanted;
}

static bool file_into(struct str name, struct str text, void *ctx, struct err *e) {
    struct tape *tape = ctx;
    struct tape_call call;
    struct buf key;
    if (!may_be_wanted(tape, text)) return true;
    if (!tape_call_decode(text, tape->arena, &call, e))
        return err_add(e, "replay '" STR_FMT "'", STR_ARG(name));
    if (!tape_is_wanted(tape, &call)) return true;
    buf_init(&key, call.request.len + 16);
    tape_key_of(call.kind, call.request, &key);
    struct takes *take = map_find(tape->takes, buf_str(&key));
    if (!take) {
        take = MEM_NEW(struct takes);
        map_put(tape->takes, buf_str(&key), take);
    }
    buf_done(&key);
    take->calls = mem_resize(take->calls, (take->count + 1) * sizeof(call));
    take->calls[take->count++] = call;
    return true;
}

static int by_time(const void *a, const void *b) {
    const struct tape_call *first = a, *second = b;
    return (first->started_us > second->started_us) - (first->started_us < second->started_us);
}

static void order_all(struct tape *tape) {
    struct str key;
    void *value;
    for (size_t cursor = 0; map_next(tape->takes, &cursor, &key, &value);) {
        struct takes *take = value;
        qsort(take->calls, take->count, sizeof(*take->calls), by_time);
    }
}

static bool play_of(const struct tape_options *options, uint64_t run, struct tape **ret,
                    struct err *e) {
    struct tape *tape = tape_new(options);
    tape->plays = true;
    tape->run = run;
    tape->arena = arena_new(TAPE_ALL_MAX_BYTES);
    tape->takes = map_new();
    bool read = folder_read(tape->folder, TAPE_FILE_MAX_BYTES, file_into, tape, e);
    if (read && map_count(tape->takes) == 0)
        read =
            err_set(e, ERR_NOT_FOUND,
                    "replay '%s': it has no recordings; make one with --record", tape->folder);
    if (!read) {
        tape_unref(tape);
        return false;
    }
    order_all(tape);
    *ret = tape;
    return true;
}

bool tape_play(const struct tape_options *options, struct tape **ret, struct err *e) {
    return play_of(options, 0, ret, e);
}

bool tape_play_run(const struct tape *of, uint64_t run, enum tape_pace pace, struct tape **ret,
                   struct err *e) {
    const struct tape_options options = {.folder = str_from(of->folder),
                                         .secrets = of->known,
                                         .secret_count = of->mask.known_count,
                                         .pace = pace};
    if (play_of(&options, run, ret, e)) return true;
    return e->code == ERR_NOT_FOUND && of->plays && play_of(&options, 0, ret, e);
}

/* --- finding ------------------------------------------------------------------------------ */

static const struct tape_call *tape_serve(struct takes *take) {
    size_t index = atomic_fetch_add(&take->served, 1);
    return &take->calls[index < take->count ? index : take->count - 1];
}

static const struct tape_call *nearest(const struct tape *tape, enum tape_kind kind,
                                       struct str request) {
    const struct tape_call *found = NULL;
    size_t best = 0;
    struct str key;
    void *value;
    for (size_t cursor = 0; map_next(tape->takes, &cursor, &key, &value);) {
        const struct tape_call *call = ((const struct takes *)value)->calls;
        if (call->kind != kind) continue;
        size_t nearness = miss_nearness(call->request, request);
        bool nearer = !found || nearness > best ||
                      (nearness == best && call->started_us < found->started_us);
        if (!nearer) continue;
        found = call;
        best = nearness;
    }
    return found;
}

static bool miss(const struct tape *tape, enum tape_kind kind, struct str request,
                 struct err *e) {
    const struct tape_call *near = nearest(tape, kind, request);
    struct buf where;
    if (!near)
        return err_set(e, ERR_NOT_FOUND,
                       "the recording has no call of a %s; record it with --record",
                       tape_kind_name(kind).at);
    buf_init(&where, 128 * KIB);
    miss_append(near->request, request, &where);
    err_set(e, ERR_NOT_FOUND,
            "no recording answers this; the nearest differs at " STR_FMT
            "; ask as recorded, or record it anew",
            STR_ARG(buf_str(&where)));
    buf_done(&where);
    return false;
}

bool tape_find(struct tape *tape, enum tape_kind kind, struct str request,
               const struct tape_call **ret, struct err *e) {
    struct buf hidden, key;
    buf_init(&hidden, REQUEST_MAX_BYTES);
    buf_init(&key, REQUEST_MAX_BYTES + 16);
    mask_json(&tape->mask, json_of(request), &hidden);
    tape_key_of(kind, buf_str(&hidden), &key);
    struct takes *take = map_find(tape->takes, buf_str(&key));
    bool found = take || miss(tape, kind, buf_str(&hidden), e);
    if (take) *ret = tape_serve(take);
    buf_done(&hidden);
    buf_done(&key);
    return found;
}
