/* Power cuts: a child writes on a disk that loses power at a random operation and keeps
 * an arbitrary part of what was not synced. What the child reported as acknowledged must be
 * found afterwards, complete and once. After it there may be writes that were under way,
 * without a gap, but never a part of one. Several cuts follow each other on one folder, so they
 * also hit recoveries, new epochs and folds of the write-ahead log.
 *
 *     WEIR_CUTS=2000 WEIR_SEED=7 build/test/store/powercut_test       60 cuts without a number
 */
#include "fixture.h"

#include "helper/powercut_vfs.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

#define CUTS 60
#define LIVES 4     /* cuts on one folder */
#define FLIGHT 8    /* writes that share a commit, at most */
#define BIG_EVERY 5 /* so often a folder's rows are large, and its log is folded */
#define TEXT_BYTES 60000
#define TELLS_EPOCH (UINT64_C(1) << 63)
#define MARK_ROOM 128
#define DIED_BY_ITSELF 1

static size_t number_from(const char *name, size_t otherwise) {
    const char *value = getenv(name);
    return value ? (size_t)strtoull(value, NULL, 10) : otherwise;
}

static size_t draw(uint64_t *state, size_t limit) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)((*state >> 33) % limit);
}

/* --- what is written, from its number alone ----------------------------------------------- */

static const char *text_of(uint64_t run, bool big) {
    static char text[TEXT_BYTES + 1];
    uint64_t state = run;
    size_t len = 1 + draw(&state, big ? TEXT_BYTES : run % 16 ? 300 : 9000);
    for (size_t i = 0; i < len; i++) text[i] = (char)('a' + (run + i * i % 31) % 26);
    text[len] = '\0';
    return text;
}

/* In one row, or in two of one write. */
static size_t rows_of(uint64_t run, bool big, struct store_row rows[static 2]) {
    if (run % 2) {
        rows[0] = whole_run(run, "s", text_of(run, big));
        return 1;
    }
    struct row_text first, second;
    row_begin(&first);
    row_section(&first, run, 1);
    row_event(&first, started("s"));
    row_event(&first, text(text_of(run, big)));
    row_begin(&second);
    row_section(&second, run, 3);
    row_event(&second, done());
    rows[0] = row_end(&first, run);
    rows[1] = row_end(&second, run);
    return 2;
}

/* --- the child ---------------------------------------------------------------------------- */

struct life {
    const char *folder;
    enum store_durability durability;
    bool big;
    uint64_t run; /* the newest one on disk, then the newest that was begun */
    uint64_t seed;
    size_t at; /* when it ends */
    int acknowledged;
    size_t under_way;
    struct loop *loop;
    /* weir.mark is written without SQLite and never synced: any version of it may survive. */
    struct {
        pthread_mutex_t lock;
        char (*texts)[MARK_ROOM];
        size_t *lens;
        size_t count;
    } marks;
    _Atomic bool renaming; /* weir.db has its name, perhaps not on the disk */
};

static struct life life;

static void path_to(char path[static 128], const char *folder, const char *name) {
    snprintf(path, 128, "%s/%s", folder, name);
}

static void remember_mark(void) {
    char path[128];
    path_to(path, life.folder, "weir.mark");
    pthread_mutex_lock(&life.marks.lock);
    size_t count = ++life.marks.count;
    life.marks.texts = mem_resize(life.marks.texts, count * MARK_ROOM);
    life.marks.lens = mem_resize(life.marks.lens, count * sizeof(size_t));
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = file < 0 ? 0 : read(file, life.marks.texts[count - 1], MARK_ROOM);
    life.marks.lens[count - 1] = len > 0 ? (size_t)len : 0;
    if (file >= 0) close(file);
    pthread_mutex_unlock(&life.marks.lock);
}

/* The file holds an older note, or is empty. A note that counts only within one boot of the
 * machine says nothing after a power cut, which begins another. */
static void lose_marks(void) {
    char path[128];
    path_to(path, life.folder, "weir.mark");
    pthread_mutex_lock(&life.marks.lock);
    size_t kept = powercut_draw(life.marks.count);
    if (life.durability != STORE_FULL) life.marks.lens[kept] = 0;
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t len = write(file, life.marks.texts[kept], life.marks.lens[kept]);
    if (len != (ssize_t)life.marks.lens[kept]) _exit(DIED_BY_ITSELF);
    close(file);
}

static void finish_cut(void *ctx) {
    (void)ctx;
    char old[128], new[128];
    lose_marks();
    path_to(old, life.folder, "weir.db.new");
    path_to(new, life.folder, "weir.db");
    if (life.renaming && powercut_draw(2)) rename(new, old);
}

/* Runs on the store's thread; each step is one more moment for the cut. */
static void look_at_step(const char *step, void *ctx) {
    (void)ctx;
    char old[128], new[128];
    path_to(old, life.folder, "weir.db.new");
    path_to(new, life.folder, "weir.db");
    if (strstr(step, "noted")) remember_mark();
    if (strcmp(step, "new filled") == 0) powercut_synced(old);
    if (strcmp(step, "new named") == 0) powercut_renamed(old, new);
    life.renaming = strcmp(step, "new named") == 0;
    powercut_tick();
    life.renaming = false;
}

static void tell(uint64_t number) {
    if (write(life.acknowledged, &number, sizeof(number)) != sizeof(number))
        _exit(DIED_BY_ITSELF);
}

static void give_up(const struct err *why) {
    fprintf(stderr, "%s\n", why->text);
    _exit(DIED_BY_ITSELF);
}

static void tell_written(struct store_write *write, const struct err *failed, void *ctx) {
    (void)write;
    const uint64_t *run = ctx;
    if (failed) give_up(failed);
    tell(*run);
    if (--life.under_way == 0) loop_stop(life.loop);
}

static void write_some(struct fixture *f, size_t count) {
    struct store_row rows[FLIGHT][2];
    struct store_write writes[FLIGHT];
    uint64_t runs[FLIGHT];
    life.under_way = count;
    for (size_t i = 0; i < count; i++) {
        runs[i] = ++life.run;
        writes[i] = (struct store_write){.rows = rows[i],
                                         .row_count = rows_of(runs[i], life.big, rows[i]),
                                         .home = f->loop,
                                         .on_written = tell_written,
                                         .ctx = &runs[i]};
        store_write(f->store, &writes[i]);
    }
    loop_run(f->loop);
    for (size_t i = 0; i < count; i++) {
        for (size_t row = 0; row < writes[i].row_count; row++) buf_done(&rows[i][row].bytes);
    }
}

/* A question fills the tables, in a commit that is not synced. */
static void ask(struct fixture *f) {
    struct store_load load = session_load("s");
    if (!fixture_try_load(f, &load)) give_up(&f->failed);
    arena_free(load.arena);
}

/* Write, ask, close and open again until the power goes. */
static _Noreturn void live(void) {
    struct fixture f = {.durability = life.durability, .at_step = look_at_step};
    snprintf(f.folder, sizeof(f.folder), "%s", life.folder);
    pthread_mutex_init(&life.marks.lock, NULL);
    remember_mark();
    struct powercut powercut = {.seed = life.seed, .at = life.at, .on_cut = finish_cut};
    powercut_begin(&powercut);
    f.loop = life.loop = loop_new();
    for (;;) {
        if (!fixture_try_open(&f)) give_up(&f.failed);
        tell(TELLS_EPOCH | store_epoch(f.store));
        size_t rounds = 1 + draw(&life.seed, life.big ? 500 : 40);
        while (rounds--) {
            write_some(&f, 1 + draw(&life.seed, FLIGHT));
            if (draw(&life.seed, 6) == 0) ask(&f);
        }
        fixture_close(&f);
    }
}

/* --- what is left ------------------------------------------------------------------------- */

struct trial {
    struct fixture f; /* its folder holds a copy: to look changes nothing */
    char disk[64];
    enum store_durability durability;
    bool big;
    uint64_t seed;
    uint64_t acknowledged, epoch; /* as the child reported */
    uint64_t found;               /* how many runs there are */
    size_t cuts, lost, lossy_cuts;
    uint64_t writes;
};

static void copy_file(const char *from_folder, const char *to_folder, const char *name) {
    static char bytes[64 * KIB];
    char from[128], to[128];
    path_to(from, from_folder, name);
    path_to(to, to_folder, name);
    unlink(to);
    int source = open(from, O_RDONLY | O_CLOEXEC);
    if (source < 0) return;
    int sink = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(sink >= 0);
    ssize_t len;
    while ((len = read(source, bytes, sizeof(bytes))) > 0)
        assert_int_equal(write(sink, bytes, (size_t)len), len);
    close(source);
    close(sink);
}

static void copy_disk(const struct trial *trial) {
    static const char *const names[] = {"weir.db", "weir.db-wal", "weir.mark", "weir.db.new"};
    char shared[128];
    path_to(shared, trial->f.folder, "weir.db-shm");
    unlink(shared);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        copy_file(trial->disk, trial->f.folder, names[i]);
}

/* False: there is nothing of it. Anything between nothing and all of it fails. */
static bool run_is_whole(struct trial *trial, uint64_t run) {
    static const enum event_kind kinds[] = {EVENT_STARTED, EVENT_TEXT, EVENT_DONE};
    struct store_load load = fixture_load(&trial->f, run_load(run, 0));
    size_t seen = 0;
    for (size_t i = 0; i < load.section_count; i++) {
        struct str rest = load.sections[i].events;
        while (rest.len) {
            struct event event = {0};
            struct err e;
            assert_true(event_decode(&rest, &event, &e));
            assert_true(seen < ARRAY_LEN(kinds));
            assert_int_equal(event.kind, kinds[seen++]);
            if (event.kind == EVENT_TEXT)
                assert_true(str_equal(event.text.text, str_from(text_of(run, trial->big))));
        }
    }
    arena_free(load.arena);
    assert_true(seen == 0 || seen == ARRAY_LEN(kinds));
    return seen > 0;
}

static size_t runs_of_the_session(struct trial *trial) {
    struct store_load load = session_load("s");
    load.runs_max = 100000;
    load.max_bytes = 256 * MIB;
    load = fixture_load(&trial->f, load);
    assert_false(load.more);
    size_t count = 0;
    uint64_t before = 0;
    for (size_t i = 0; i < load.section_count; i++) {
        assert_in_range(load.sections[i].run, before, before + 1);
        count += load.sections[i].run != before;
        before = load.sections[i].run;
    }
    arena_free(load.arena);
    return count;
}

static void look(struct trial *trial) {
    struct fixture *f = &trial->f;
    copy_disk(trial);
    f->durability = trial->durability;
    fixture_open(f);
    uint64_t found = 0;
    while (run_is_whole(trial, found + 1)) found++;
    for (uint64_t run = found + 2; run <= found + 2 * FLIGHT; run++)
        assert_false(run_is_whole(trial, run));
    assert_int_equal(runs_of_the_session(trial), found);
    assert_answer(f, (struct store_load){.question = STORE_UNFINISHED}, "");
    if (trial->durability == STORE_FULL) assert_true(store_epoch(f->store) > trial->epoch);
    fixture_close(f);
    if (found < trial->acknowledged) {
        trial->lost += trial->acknowledged - found;
        trial->lossy_cuts++;
    }
    trial->found = found;
}

/* --- cut after cut ------------------------------------------------------------------------ */

static size_t choose_moment(struct trial *trial) {
    if (draw(&trial->seed, 4) == 0) return 1 + draw(&trial->seed, 60); /* while it opens */
    return 1 + draw(&trial->seed, trial->big ? 12000 : 900);
}

static void one_life(struct trial *trial) {
    int acknowledged[2], status;
    assert_int_equal(pipe(acknowledged), 0);
    life = (struct life){.folder = trial->disk,
                         .durability = trial->durability,
                         .big = trial->big,
                         .run = trial->found,
                         .seed = draw(&trial->seed, UINT32_MAX),
                         .at = choose_moment(trial),
                         .acknowledged = acknowledged[1]};
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) live();
    close(acknowledged[1]);
    uint64_t number;
    trial->acknowledged = trial->found;
    while (read(acknowledged[0], &number, sizeof(number)) == sizeof(number)) {
        if (number & TELLS_EPOCH)
            trial->epoch = number & ~TELLS_EPOCH;
        else
            trial->acknowledged = number;
    }
    close(acknowledged[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("the child ended with %d", status);
    trial->writes += trial->acknowledged - trial->found;
    trial->cuts++;
}

static void new_disk(struct trial *trial) {
    test_folder_remove(trial->disk);
    test_folder_remove(trial->f.folder);
    assert_int_equal(mkdir(trial->disk, 0700), 0);
    assert_int_equal(mkdir(trial->f.folder, 0700), 0);
    trial->found = trial->epoch = 0;
    trial->big = trial->cuts / LIVES % BIG_EVERY == BIG_EVERY - 1;
}

static struct trial cut_again_and_again(enum store_durability durability, size_t cuts) {
    struct trial trial = {.durability = durability, .seed = number_from("WEIR_SEED", 1)};
    fixture_init(&trial.f);
    test_folder_make(trial.disk);
    while (trial.cuts < cuts) {
        if (trial.cuts % LIVES == 0) new_disk(&trial);
        one_life(&trial);
        look(&trial);
        if (durability == STORE_FULL && trial.lost)
            fail_msg("cut %zu: %zu acknowledged writes are lost; see %s", trial.cuts,
                     trial.lost, trial.disk);
    }
    test_folder_remove(trial.disk);
    fixture_done(&trial.f);
    print_message("%zu cuts, %llu acknowledged writes; %zu of them lost, in %zu cuts\n",
                  trial.cuts, (unsigned long long)trial.writes, trial.lost, trial.lossy_cuts);
    return trial;
}

static void a_power_cut_takes_nothing_that_was_acknowledged(void **state) {
    (void)state;
    struct trial trial = cut_again_and_again(STORE_FULL, number_from("WEIR_CUTS", CUTS));
    assert_true(trial.writes > 0);
    assert_int_equal(trial.lost, 0);
}

/* That this disk forgets at all: without a sync in each commit it takes the newest writes, and
 * still leaves a store that opens and holds what is before them. */
static void without_syncs_a_power_cut_takes_the_newest_writes(void **state) {
    (void)state;
    size_t cuts = number_from("WEIR_CUTS", CUTS) / 3;
    struct trial trial = cut_again_and_again(STORE_NORMAL, cuts);
    assert_true(trial.lossy_cuts > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_power_cut_takes_nothing_that_was_acknowledged),
        cmocka_unit_test(without_syncs_a_power_cut_takes_the_newest_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
