/* store_bench: how many writes a second are acknowledged, how late, and at what cost.
 *
 *     store_bench [FOLDER [SECONDS [WORKLOAD [SESSIONS [WRITES]]]]]
 *                              default: a fresh folder under /var/tmp, 2 s each, all, 1,000
 *
 * With WRITES it ends after so many, however long that takes: bench/store_instructions.sh counts
 * instructions so.
 *
 * One loop keeps a number of writes in flight; each is one row, and as soon as it is
 * acknowledged the next one follows. Kinds of row: `turn`, a whole run of one of 1,000
 * sessions, which the tables must take up; `streamed`, such a run of 66 events, as a reply in 64
 * pieces of 64 bytes leaves it; `text`, a piece of a run that goes on; and `large`, such a piece
 * of 5 KiB. Then loads, while turns are written beside them.
 */
#include "base/clock.h"
#include "base/mem.h"
#include "store/store.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define LATE_MAX 4000000

enum kind { TURN, STREAMED, TEXT, LARGE };

static const struct workload {
    const char *name;
    enum kind kind;
    size_t row_bytes, in_flight;
    bool loads; /* beside each write, ask for a session nobody knows and for a known one */
} workloads[] = {
    /* clang-format off */
    {"turn  300 B",        TURN,  300,       1,    false},
    {"turn  300 B",        TURN,  300,       64,   false},
    {"turn  300 B",        TURN,  300,       1000, false},
    {"text  300 B",        TEXT,  300,       1,    false},
    {"text  300 B",        TEXT,  300,       64,   false},
    {"text  300 B",        TEXT,  300,       1000, false},
    {"text  200 B",        TEXT,  200,       500,  false},
    {"text  200 B",        TEXT,  200,       1000, false},
    {"text  200 B",        TEXT,  200,       2000, false},
    {"large 5 KiB",        LARGE, 5 * KIB,   1,    false},
    {"large 5 KiB",        LARGE, 5 * KIB,   64,   false},
    {"large 5 KiB",        LARGE, 5 * KIB,   1000, false},
    {"turn 300 B + loads", TURN,  300,       64,   true},
    {"streamed, 66 events", STREAMED, 64,    64,   false},
    {"streamed, 66 events", STREAMED, 64,    256,  false},
    {"turn  300 B",        TURN,  300,       256,  false},
    /* clang-format on */
};

struct writer {
    struct store_write write;
    struct store_row row;
    uint64_t number, sent_us;
};

struct asker {
    struct store_load load;
    uint64_t sent_us;
    char name[16];
    bool out;
};

static struct {
    struct loop *loop;
    struct store *store;
    const struct workload *load;
    uint64_t sessions; /* that the turns are spread over */
    uint64_t next_run, until_us, writes, writes_max, in_flight;
    uint64_t turn; /* in text: counts the sequence numbers */
    uint32_t *late_us;
    struct asker stranger, friend;
    uint64_t asked[2], asked_us[2], asked_most_us[2];
} bench;

static void opened(const struct err *failed, void *ctx) {
    (void)ctx;
    if (failed) {
        fprintf(stderr, "store_bench: %s\n", failed->text);
        exit(1);
    }
    loop_stop(bench.loop);
}

static void put(struct buf *events, const struct event *event) {
    bool fits = event_encode(event, events);
    assert(fits);
    (void)fits;
}

static void put_started(struct buf *events, uint64_t run) {
    char session[16];
    snprintf(session, sizeof(session), "s%u", (unsigned)(run * 7919 % bench.sessions));
    put(events, &(struct event){.kind = EVENT_STARTED,
                                .agent = STR("manager"),
                                .started = {.workspace = STR("w"),
                                            .user = STR("u"),
                                            .session = str_from(session),
                                            .contract = STR("crawbl"),
                                            .unix_ms = 1700000000000}});
}

static void put_text(struct buf *events, struct str text) {
    put(events,
        &(struct event){.kind = EVENT_TEXT, .agent = STR("manager"), .text = {.text = text}});
}

static void put_end(struct buf *events, struct str turns) {
    put(events, &(struct event){.kind = EVENT_USAGE,
                                .agent = STR("manager"),
                                .usage = {.model = STR("m"), .prompt = 10, .total = -1}});
    put(events,
        &(struct event){.kind = EVENT_DONE, .done = {.model = STR("m"), .turns = turns}});
}

#define STREAMED_PIECES 64

/* The pieces differ, as a model's do. */
static void put_streamed(struct buf *events, size_t piece_bytes) {
    static char letters[] = "%08zu the water goes on over the weir, to the mill, to the sea...";
    char piece[128];
    struct buf reply, turns;
    buf_init(&reply, 64 * KIB);
    buf_init(&turns, 64 * KIB);
    for (size_t i = 0; i < STREAMED_PIECES; i++) {
        snprintf(piece, sizeof(piece), letters, i);
        struct str text = str_head(str_from(piece), piece_bytes);
        put_text(events, text);
        buf_append(&reply, text);
    }
    event_turn_append(&turns, STR("manager"), buf_str(&reply));
    put_end(events, buf_str(&turns));
    buf_done(&reply);
    buf_done(&turns);
}

static void fill(struct writer *writer) {
    static char letters[8 * KIB];
    memset(letters, 'x', sizeof(letters));
    struct buf events;
    buf_init(&events, 64 * KIB);
    uint64_t run = bench.next_run++, seq = 1;
    size_t bytes = bench.load->row_bytes;
    switch (bench.load->kind) {
    case TURN:
        put_started(&events, run);
        put_text(&events, str_of(letters, bytes - 120));
        put_end(&events, STR_EMPTY);
        break;
    case STREAMED:
        put_started(&events, run);
        put_streamed(&events, bytes);
        break;
    case TEXT:
    case LARGE:
        seq = 2 + bench.turn++ / bench.sessions;
        run = 1 + run % bench.sessions;
        put_text(&events, str_of(letters, bytes - 24));
        break;
    }
    buf_clear(&writer->row.bytes);
    store_section_append(&writer->row.bytes, run, seq, buf_str(&events));
    writer->row.run = run;
    buf_done(&events);
}

static void send_next(struct writer *writer);

static void written(struct store_write *write, const struct err *failed, void *ctx) {
    (void)write;
    struct writer *writer = ctx;
    if (failed) {
        fprintf(stderr, "store_bench: %s\n", failed->text);
        exit(1);
    }
    uint64_t now_us = clock_mono_us();
    if (bench.writes < LATE_MAX)
        bench.late_us[bench.writes] = (uint32_t)(now_us - writer->sent_us);
    bench.writes++;
    bench.in_flight--;
    bool more = bench.writes_max ? bench.writes + bench.in_flight < bench.writes_max
                                 : now_us < bench.until_us;
    if (more) {
        send_next(writer);
    } else if (bench.in_flight == 0 && !bench.stranger.out && !bench.friend.out) {
        loop_stop(bench.loop);
    }
}

static void ask(struct asker *asker, const char *name);

static void loaded(struct store_load *load, const struct err *failed, void *ctx) {
    struct asker *asker = ctx;
    assert(!failed);
    (void)failed;
    size_t which = asker == &bench.friend;
    uint64_t took_us = clock_mono_us() - asker->sent_us;
    bench.asked[which]++;
    bench.asked_us[which] += took_us;
    if (took_us > bench.asked_most_us[which]) bench.asked_most_us[which] = took_us;
    arena_free(load->arena);
    asker->out = false;
}

static void ask(struct asker *asker, const char *name) {
    if (asker->out) return;
    snprintf(asker->name, sizeof(asker->name), "%s", name);
    asker->load = (struct store_load){
        .question = STORE_SESSION,
        .workspace = STR("w"),
        .user = STR("u"),
        .session = str_from(asker->name),
        .runs_max = 10,
        .max_bytes = 64 * KIB,
        .home = bench.loop,
        .on_loaded = loaded,
        .ctx = asker,
    };
    asker->out = true;
    asker->sent_us = clock_mono_us();
    store_load(bench.store, &asker->load);
}

static void send_next(struct writer *writer) {
    fill(writer);
    writer->write.rows = &writer->row;
    writer->write.row_count = 1;
    writer->sent_us = clock_mono_us();
    bench.in_flight++;
    store_write(bench.store, &writer->write);
    if (!bench.load->loads) return;
    ask(&bench.stranger, "nobody");
    ask(&bench.friend, "s1");
}

static int by_size(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static double cpu_us(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static void run(const char *folder, const struct workload *load, double seconds) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/%d", folder, (int)(load - workloads));
    bench.load = load;
    bench.loop = loop_new();
    bench.writes = bench.turn = 0;
    bench.next_run = 1;
    memset(bench.asked, 0, sizeof(bench.asked));
    memset(bench.asked_us, 0, sizeof(bench.asked_us));
    memset(bench.asked_most_us, 0, sizeof(bench.asked_most_us));
    struct store_options options = {
        .folder = str_from(path),
        .durability = STORE_FULL,
        .loop = bench.loop,
        .on_open = opened,
    };
    bench.store = store_open(&options);
    loop_run(bench.loop);

    struct writer *writers = mem_zero(load->in_flight, sizeof(*writers));
    double cpu_before = cpu_us();
    uint64_t began_us = clock_mono_us();
    bench.until_us = began_us + (uint64_t)(seconds * 1e6);
    for (size_t i = 0; i < load->in_flight; i++) {
        buf_init(&writers[i].row.bytes, 64 * KIB);
        writers[i].write.home = bench.loop;
        writers[i].write.on_written = written;
        writers[i].write.ctx = &writers[i];
        send_next(&writers[i]);
    }
    loop_run(bench.loop);
    double took_us = (double)(clock_mono_us() - began_us), used_us = cpu_us() - cpu_before;
    uint64_t closing_us = clock_mono_us();
    store_close(bench.store);
    closing_us = clock_mono_us() - closing_us;

    size_t count = bench.writes < LATE_MAX ? bench.writes : LATE_MAX;
    qsort(bench.late_us, count, sizeof(*bench.late_us), by_size);
    printf("%-18s %5zu %9.0f %8u %8u %8u %8.2f\n", load->name, load->in_flight,
           (double)bench.writes / took_us * 1e6, bench.late_us[count / 2],
           bench.late_us[count * 99 / 100], bench.late_us[count - 1],
           used_us / (double)bench.writes);
    for (size_t i = 0; load->loads && i < 2; i++) {
        printf("  %-24s %9" PRIu64 " loads, mean %.1f us, longest %" PRIu64 " us\n",
               i ? "of a known session" : "of an unknown session", bench.asked[i],
               (double)bench.asked_us[i] / (double)bench.asked[i], bench.asked_most_us[i]);
    }
    for (size_t i = 0; i < load->in_flight; i++) buf_done(&writers[i].row.bytes);
    free(writers);
    loop_free(bench.loop);
}

int main(int argc, char **argv) {
    char made[] = "/var/tmp/store_bench.XXXXXX";
    const char *folder = argc > 1 ? argv[1] : mkdtemp(made);
    double seconds = argc > 2 ? atof(argv[2]) : 2;
    bench.sessions = argc > 4 ? strtoull(argv[4], NULL, 10) : 1000;
    if (bench.sessions == 0) bench.sessions = 1000;
    bench.writes_max = argc > 5 ? strtoull(argv[5], NULL, 10) : 0;
    bench.late_us = mem_alloc(LATE_MAX * sizeof(*bench.late_us));
    printf("%-18s %5s %9s %8s %8s %8s %8s\n", "row", "at a", "writes/s", "p50 us", "p99 us",
           "max us", "CPU us");
    for (size_t i = 0; i < ARRAY_LEN(workloads); i++) {
        if (argc > 3 && (size_t)atoi(argv[3]) != i) continue;
        run(folder, &workloads[i], seconds);
    }
    free(bench.late_us);
    printf("left behind: %s\n", folder);
    return 0;
}
