#include "provider/speaker.h"

#include "base/mem.h"
#include "provider/media_local.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PROGRAM "espeak-ng"
#define USUAL_PATH "/usr/local/bin:/usr/bin:/bin"
#define PATH_MAX_BYTES (64 * KIB)
#define TICK_MS 50 /* how often a listing checks whether it should stop */

enum listing {
    LIST_NONE, /* the program was not found */
    LIST_RUNS,
    LIST_DONE, /* `voices` or `why` is set */
};

/* The only variables of our environment that the program gets; none holds a key. */
static const char *const variables[] = {"PATH",   "HOME",   "LANG",
                                        "LC_ALL", "TMPDIR", "ESPEAK_DATA_PATH"};

struct speaker {
    char *program, *path;
    char *environment[ARRAY_LEN(variables) + 1];
    atomic_bool leaving; /* tells a running listing to stop */

    pthread_mutex_t lock; /* guards the members below */
    pthread_cond_t listed;
    enum listing listing;
    struct voices *voices; /* NULL: none were listed */
    struct err why;
    char *file; /* path of the program; never changes once set */
    pthread_t thread;
    bool threaded; /* `thread` must be joined */
};

static bool not_installed(const struct speaker *speaker, struct err *e) {
    return err_set(e, ERR_UNAVAILABLE,
                   "speech needs the program '%s', which is not installed: apt-get install "
                   "espeak-ng",
                   speaker->program);
}

/* --- its voices --------------------------------------------------------------------------- */

struct listed {
    const struct speaker *speaker;
    struct loop *loop;
    struct timer tick;
    unsigned waited_ms;
    struct child *child; /* NULL: it ended */
    struct buf text;
    bool good;
    struct err why;
};

static void on_listed_output(struct str bytes, void *ctx) {
    struct listed *listed = ctx;
    if (buf_append(&listed->text, bytes)) return;
    child_kill(listed->child);
    listed->child = NULL;
    err_set(&listed->why, ERR_UNAVAILABLE, PROGRAM " --voices does not end");
    loop_stop(listed->loop);
}

static void on_listed_end(const struct child_end *end, void *ctx) {
    struct listed *listed = ctx;
    listed->child = NULL;
    listed->good = end->exit_code == 0;
    err_set(&listed->why, ERR_UNAVAILABLE, PROGRAM " --voices failed with %d", end->exit_code);
    loop_stop(listed->loop);
}

static void speaker_on_tick(void *ctx) {
    struct listed *listed = ctx;
    listed->waited_ms += TICK_MS;
    if (listed->waited_ms < LOCAL_VOICES_MS && !atomic_load(&listed->speaker->leaving)) {
        timer_start(&listed->tick, TICK_MS);
        return;
    }
    child_kill(listed->child);
    listed->child = NULL;
    err_set(&listed->why, ERR_UNAVAILABLE, PROGRAM " --voices said nothing for %d s",
            LOCAL_VOICES_MS / 1000);
    loop_stop(listed->loop);
}

static const char *const *environment_of(const struct speaker *speaker) {
    return (const char *const *)(uintptr_t)speaker->environment;
}

/* Runs on the listing's thread, with a loop of its own. */
static bool ask_voices(struct speaker *speaker, struct listed *listed) {
    static const struct child_sink sink = {.on_output = on_listed_output,
                                           .on_end = on_listed_end};
    const char *args[] = {speaker->program, "--voices", NULL};
    struct child_options options = {.path = speaker->file,
                                    .args = args,
                                    .environment = environment_of(speaker),
                                    .input = STR_EMPTY};
    timer_init(&listed->tick, listed->loop, speaker_on_tick, listed);
    if (!child_start(listed->loop, &options, &sink, listed, &listed->child, &listed->why))
        return false;
    timer_start(&listed->tick, TICK_MS);
    loop_run(listed->loop);
    timer_stop(&listed->tick);
    return listed->good;
}

static void *speaker_list(void *ctx) {
    struct speaker *speaker = ctx;
    struct voices *voices = NULL;
    struct listed listed = {.speaker = speaker, .loop = loop_new()};
    buf_init(&listed.text, VOICES_MAX_BYTES);
    if (!ask_voices(speaker, &listed) ||
        !voices_read(buf_str(&listed.text), &voices, &listed.why))
        listed.why.code = ERR_UNAVAILABLE;
    buf_done(&listed.text);
    loop_free(listed.loop);

    pthread_mutex_lock(&speaker->lock);
    speaker->voices = voices;
    speaker->why = listed.why;
    speaker->listing = LIST_DONE;
    pthread_cond_broadcast(&speaker->listed);
    pthread_mutex_unlock(&speaker->lock);
    return NULL;
}

/* Called with the lock held. Looks again, because the program may have been installed
 * meanwhile. */
static void begin_listing(struct speaker *speaker) {
    struct buf file;
    if (speaker->listing != LIST_NONE) return;
    buf_init(&file, PATH_MAX_BYTES);
    if (child_find(str_from(speaker->program), str_from(speaker->path), &file)) {
        speaker->file = str_dup(buf_str(&file));
        speaker->listing = LIST_RUNS;
        speaker->threaded = pthread_create(&speaker->thread, NULL, speaker_list, speaker) == 0;
        if (!speaker->threaded) {
            err_set(&speaker->why, ERR_UNAVAILABLE,
                    "no thread could be started to list voices");
            speaker->listing = LIST_DONE;
        }
    }
    buf_done(&file);
}

bool speaker_voices(struct speaker *speaker, const struct voices **ret, struct err *e) {
    pthread_mutex_lock(&speaker->lock);
    begin_listing(speaker);
    while (speaker->listing == LIST_RUNS) pthread_cond_wait(&speaker->listed, &speaker->lock);
    bool installed = speaker->listing == LIST_DONE;
    const struct voices *voices = speaker->voices;
    *e = speaker->why;
    pthread_mutex_unlock(&speaker->lock);
    if (!installed) return not_installed(speaker, e);
    *ret = voices;
    return voices != NULL;
}

/* --- creation and release ----------------------------------------------------------------- */

static const char *speaker_variable(const char *name) {
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): nothing here changes the environment */
    return getenv(name);
}

static void take_environment(struct speaker *speaker) {
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
        const char *value = speaker_variable(variables[i]);
        struct buf line;
        if (!value) continue;
        buf_init(&line, PATH_MAX_BYTES);
        if (buf_printf(&line, "%s=%s", variables[i], value))
            speaker->environment[count++] = str_dup(buf_str(&line));
        buf_done(&line);
    }
}

static struct str path_of(struct str path) {
    const char *usual = speaker_variable("PATH");
    if (path.at) return path;
    return usual ? str_from(usual) : STR(USUAL_PATH);
}

struct speaker *speaker_new(struct str program, struct str path) {
    struct speaker *speaker = MEM_NEW(struct speaker);
    speaker->program = str_dup(program.len ? program : STR(PROGRAM));
    speaker->path = str_dup(path_of(path));
    take_environment(speaker);
    pthread_mutex_init(&speaker->lock, NULL);
    pthread_cond_init(&speaker->listed, NULL);
    pthread_mutex_lock(&speaker->lock);
    begin_listing(speaker);
    pthread_mutex_unlock(&speaker->lock);
    return speaker;
}

void speaker_free(struct speaker *speaker) {
    if (!speaker) return;
    atomic_store(&speaker->leaving, true);
    if (speaker->threaded) pthread_join(speaker->thread, NULL);
    pthread_mutex_destroy(&speaker->lock);
    pthread_cond_destroy(&speaker->listed);
    voices_free(speaker->voices);
    for (size_t i = 0; speaker->environment[i]; i++) free(speaker->environment[i]);
    free(speaker->program);
    free(speaker->path);
    free(speaker->file);
    free(speaker);
}

bool media_local_find(struct buf *ret) {
    return child_find(STR(PROGRAM), path_of((struct str){NULL, 0}), ret);
}

/* --- the arguments ------------------------------------------------------------------------ */

/* The scales of espeak-ng (espeak-ng(1)) and the limits of the contract. */
enum {
    WORDS_USUAL = 175,
    WORDS_MIN = 80,
    WORDS_MAX = 450,
    PITCH_USUAL = 50,
    PITCH_MAX = 99,
    SEMITONES_MAX = 24,
    SEMITONES_AN_OCTAVE = 12,
    VOLUME_USUAL = 100,
    VOLUME_MAX = 200,
    FACTOR_MAX = 4,
};

static bool in_range(const char *what, double number, double least, double most,
                     struct err *e) {
    if (isfinite(number) && number >= least && number <= most) return true;
    return err_set(e, ERR_INVALID_ARGUMENT, "%s is %g; it may be %g to %g", what, number, least,
                   most);
}

static bool ranges_are_kept(const struct media_request *request, struct err *e) {
    int64_t rate_hz = request->sample_rate_hz;
    if (!in_range("speed", request->speed, 0, FACTOR_MAX, e) ||
        !in_range("volume", request->volume, 0, FACTOR_MAX, e) ||
        !in_range("pitch", request->pitch, -SEMITONES_MAX, SEMITONES_MAX, e))
        return false;
    return rate_hz == 0 ||
           in_range("sample_rate_hz", (double)rate_hz, LOCAL_RATE_MIN_HZ, LOCAL_RATE_MAX_HZ, e);
}

/* A factor of 0 means not set: the usual value. */
static long scaled(double factor, long usual, long least, long most) {
    long number = factor == 0 ? usual : lround((double)usual * factor);
    return number < least ? least : number > most ? most : number;
}

static long pitch_of(double semitones) {
    long number = PITCH_USUAL + lround(PITCH_USUAL * semitones / SEMITONES_AN_OCTAVE);
    return number < 0 ? 0 : number > PITCH_MAX ? PITCH_MAX : number;
}

bool speaker_order(struct speaker *speaker, const struct media_request *request,
                   struct speaker_order *ret, struct err *e) {
    const struct voices *voices;
    if (!ranges_are_kept(request, e) || !speaker_voices(speaker, &voices, e) ||
        !voices_pick(voices, str_trim(request->voice), str_trim(request->language), &ret->file,
                     e))
        return false;
    snprintf(ret->speed, sizeof(ret->speed), "%ld",
             scaled(request->speed, WORDS_USUAL, WORDS_MIN, WORDS_MAX));
    snprintf(ret->volume, sizeof(ret->volume), "%ld",
             scaled(request->volume, VOLUME_USUAL, 0, VOLUME_MAX));
    snprintf(ret->pitch, sizeof(ret->pitch), "%ld", pitch_of(request->pitch));
    return true;
}

/* None of the 131 voices of espeak-ng 1.51 speaks more than 27.1 letters a second at the usual
 * speed (short words, "the the the"); other speeds scale this. Endless runs of letters are
 * spoken faster, so at most WORD_LETTERS count per word. A non-ASCII letter may be silent, such
 * as an accent, so it counts half. */
enum { LETTERS_A_SECOND = 35, WORD_LETTERS = 16, HALVES = 2 };

static size_t half_letters(char byte) {
    bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
    if (letter || (byte >= '0' && byte <= '9')) return HALVES;
    return (unsigned char)byte >= 0xc0; /* the first byte of a longer character */
}

bool speaker_outlasts(const struct media_request *request, uint64_t seconds) {
    uint64_t halves = 0, of_word = 0;
    uint64_t words = (uint64_t)scaled(request->speed, WORDS_USUAL, WORDS_MIN, WORDS_MAX);
    uint64_t most = HALVES * LETTERS_A_SECOND * seconds * words / WORDS_USUAL;
    for (size_t i = 0; i < request->text.len; i++) {
        char byte = request->text.at[i];
        if (byte == ' ' || byte == '\n' || byte == '\t') of_word = 0;
        if (of_word >= (uint64_t)HALVES * WORD_LETTERS) continue;
        of_word += half_letters(byte);
        halves += half_letters(byte);
    }
    return halves > most;
}

/* espeak-ng reads a control character in the text as a command ("\1" followed by "80S"), and
 * "[[" as phoneme names. A NUL ends the text. */
void speaker_append_text(struct str text, struct buf *out) {
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.at[i];
        bool control = (byte < ' ' && byte != '\n' && byte != '\t') || byte == 0x7f;
        buf_append_byte(out, control ? ' ' : text.at[i]);
        if (byte == '[' && i + 1 < text.len && text.at[i + 1] == '[') buf_append_byte(out, ' ');
    }
}

bool speaker_start(struct speaker *speaker, struct loop *loop,
                   const struct speaker_order *order, struct str text,
                   const struct child_sink *sink, void *ctx, struct child **ret,
                   struct err *e) {
    char *file = str_dup(order->file);
    const char *args[] = {
        speaker->program, "--stdin", "--stdout",   "-b", "1",           "-v", file, "-s",
        order->speed,     "-p",      order->pitch, "-a", order->volume, NULL};
    struct child_options options = {.path = speaker->file,
                                    .args = args,
                                    .environment = environment_of(speaker),
                                    .input = text};
    bool started = child_start(loop, &options, sink, ctx, ret, e);
    free(file);
    return started;
}
