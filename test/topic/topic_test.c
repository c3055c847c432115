#include "topic/topic.h"

#include "base/mem.h"
#include "helper/assert_str.h"
#include "helper/moves.h"
#include "loop/loop.h"
#include "proto/health.pb.h"
#include "topic/log.h"
#include "wire/grpc.h"

#include <pthread.h>
#include <stdlib.h>

/* What is published is a HealthCheckRequest: its service is the word, and the sequence is only
 * kept beside it. So a frame shows which event it is by its word. */
#define WORD_BYTES 32
#define READERS 200
#define FRAME_BYTES (GRPC_PREFIX_BYTES + 2 + 8) /* of an eight-letter word */

struct heard {
    struct topic_reader reader;
    struct buf got; /* words, each with a blank */
    size_t queued;  /* bytes that the peer has not read */
    size_t low;     /* 0: not asked for */
    size_t lost, ended;
    enum err_code ended_code;
    uint64_t turned; /* the cursor after its last turn */
    bool slow;       /* nothing leaves by itself */
    bool closed;     /* nothing can be sent any more */
    bool stops;      /* in lost() */
    const char *only;
    char room[64 * KIB];
};

struct scene {
    struct topic *topic;
    struct loop *loop;
    struct heard heard[READERS];
};

/* --- the wire ----------------------------------------------------------------------------- */

static char *room(size_t bytes, void *ctx) {
    struct heard *heard = ctx;
    assert_int_equal(heard->lost + heard->ended, 0);
    assert_true(bytes > 0 && bytes <= sizeof(heard->room));
    return heard->closed ? NULL : heard->room;
}

static void put(size_t bytes, void *ctx) {
    struct heard *heard = ctx;
    for (size_t at = 0; at < bytes;) {
        size_t len = (size_t)(unsigned char)heard->room[at + GRPC_PREFIX_BYTES - 1] |
                     (size_t)(unsigned char)heard->room[at + GRPC_PREFIX_BYTES - 2] << 8;
        assert_int_equal(heard->room[at], 0);
        at += GRPC_PREFIX_BYTES;
        buf_append(&heard->got, str_of(heard->room + at + 2, len - 2)); /* tag and length */
        buf_append_byte(&heard->got, ' ');
        at += len;
    }
    if (heard->slow) heard->queued += bytes;
}

static size_t queued(void *ctx) {
    return ((struct heard *)ctx)->queued;
}

static void wake_at(size_t low, void *ctx) {
    ((struct heard *)ctx)->low = low;
}

static bool wants(struct str label, void *ctx) {
    const struct heard *heard = ctx;
    return !heard->only || str_equal(label, str_from(heard->only));
}

static void lost(void *ctx) {
    struct heard *heard = ctx;
    heard->lost++;
    if (heard->stops) topic_reader_stop(&heard->reader);
}

static void ended(enum err_code code, const char *text, void *ctx) {
    struct heard *heard = ctx;
    assert_string_equal(text, "it is closed");
    heard->ended++;
    heard->ended_code = code;
    if (heard->stops) topic_reader_stop(&heard->reader);
}

static void turned(uint64_t cursor, void *ctx) {
    ((struct heard *)ctx)->turned = cursor;
}

static const struct topic_wire wire = {room, put, queued, wake_at, wants, lost, ended, turned};

/* --- the scene ---------------------------------------------------------------------------- */

static int set_up(void **state) {
    struct scene *scene = MEM_NEW(struct scene);
    scene->loop = loop_new_fake();
    for (size_t i = 0; i < READERS; i++) buf_init(&scene->heard[i].got, 4 * MIB);
    *state = scene;
    return 0;
}

static int tear_down(void **state) {
    struct scene *scene = *state;
    for (size_t i = 0; i < READERS; i++) {
        topic_reader_stop(&scene->heard[i].reader);
        buf_done(&scene->heard[i].got);
    }
    topic_unref(scene->topic);
    loop_turn(scene->loop);
    loop_free(scene->loop);
    free(scene);
    return 0;
}

static void open_topic(struct scene *scene, enum topic_kind kind, size_t max_frames) {
    scene->topic = topic_new(&(struct topic_options){
        .kind = kind, .max_bytes = MIB, .max_frames = max_frames, .first_sequence = 1});
}

static uint64_t say(struct topic *topic, const char *word, const char *label) {
    struct grpc_health_check_request message = {.service = str_from(word)};
    uint64_t sequence;
    uint64_t published =
        topic_publish(topic, &(struct topic_event){&grpc_health_check_request_table, &message,
                                                   &sequence, str_from(label)});
    assert_int_equal(published, sequence);
    return published;
}

/* Let everything happen that can. */
static void settle(struct scene *scene) {
    for (int i = 0; i < 4; i++) {
        loop_turn(scene->loop);
        loop_advance(scene->loop, 1);
    }
}

static struct heard *listen(struct scene *scene, size_t index, enum topic_start start,
                            uint64_t after) {
    struct heard *heard = &scene->heard[index];
    topic_reader_start(&heard->reader, scene->topic, scene->loop, start, after, &wire, heard);
    return heard;
}

#define assert_heard(heard, words) assert_str(buf_str(&(heard)->got), words)

/* --- what readers get --------------------------------------------------------------------- */

static void readers_get_what_comes_in_order(void **state) {
    struct scene *scene = *state;
    open_topic(scene, TOPIC_EVENTS, 8);
    say(scene->topic, "before", "");
    const struct heard *one = listen(scene, 0, TOPIC_LIVE, 0);
    const struct heard *two = listen(scene, 1, TOPIC_LIVE, 0);
    settle(scene);
    assert_heard(one, "");
    for (const char *word = "abcd"; *word; word++) say(scene->topic, (char[]){*word, 0}, "");
    settle(scene);
    say(scene->topic, "e", "");
    settle(scene);
    assert_heard(one, "a b c d e ");
    assert_heard(two, "a b c d e ");
}

/* Whenever it subscribes, around whatever is published, nothing is missing or repeated. */
static void replay_joins_live_without_a_gap(void **state) {
    struct scene *scene = *state;
    open_topic(scene, TOPIC_EVENTS, 100);
    char word[WORD_BYTES];
    for (size_t i = 0; i < 40; i++) {
        snprintf(word, sizeof(word), "%zu", i + 1);
        if (i % 3 == 0) listen(scene, i, TOPIC_AFTER, 0);
        say(scene->topic, word, "");
        if (i % 3 == 1) listen(scene, i, TOPIC_AFTER, 0);
        if (i % 5 == 0) loop_turn(scene->loop);
        if (i % 3 == 2) listen(scene, i, TOPIC_AFTER, 0);
    }
    settle(scene);
    struct buf all;
    buf_init(&all, 4 * KIB);
    for (size_t i = 0; i < 40; i++) {
        buf_append_u64(&all, i + 1);
        buf_append_byte(&all, ' ');
    }
    for (size_t i = 0; i < 40; i++)
        assert_true(str_equal(buf_str(&scene->heard[i].got), buf_str(&all)));
    buf_done(&all);
}

static void a_cursor_says_where_to_begin(void **state) {
    struct scene *scene = *state;
    open_topic(scene, TOPIC_EVENTS, 3);
    const char *words[] = {"a", "b", "c", "d", "e"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) say(scene->topic, words[i], "");
    static const struct {
        uint64_t after;
        bool reaches;
        const char *heard;
    } cases[] = {
        {0, false, "c d e "}, {1, false, "c d e "},
        {2, true, "c d e "},  {3, true, "d e "},
        {4, true, "e "},      {5, true, ""},
        {6, false, "c d e "}, {UINT64_MAX, false, "c d e "},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct heard *heard = &scene->heard[i];
        bool reaches = topic_reader_start(&heard->reader, scene->topic, scene->loop,
                                          TOPIC_AFTER, cases[i].after, &wire, heard);
        assert_int_equal(reaches, cases[i].reaches);
    }
    settle(scene);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_heard(&scene->heard[i], cases[i].heard);
}

static void a_topic_may_begin_anywhere(void **state) {
    struct scene *scene = *state;
    scene->topic = topic_new(&(struct topic_options){TOPIC_EVENTS, MIB, 8, 1000});
    assert_int_equal(topic_last(scene->topic), 999);
    struct heard *old = &scene->heard[0], *newest = &scene->heard[1];
    assert_false(topic_reader_start(&old->reader, scene->topic, scene->loop, TOPIC_AFTER, 998,
                                    &wire, old));
    assert_true(topic_reader_start(&newest->reader, scene->topic, scene->loop, TOPIC_AFTER, 999,
                                   &wire, newest));
    assert_int_equal(say(scene->topic, "a", ""), 1000);
    settle(scene);
    assert_heard(old, "a ");
    assert_heard(newest, "a ");
}

static void a_reader_gets_only_what_it_wants(void **state) {
    struct scene *scene = *state;
    open_topic(scene, TOPIC_EVENTS, 100);
    struct heard *heard = listen(scene, 0, TOPIC_LIVE, 0);
    struct heard *all = listen(scene, 1, TOPIC_LIVE, 0);
    heard->only = "anna";
    say(scene->topic, "a1", "anna");
    say(scene->topic, "b1", "ben");
    say(scene->topic, "b2", "ben");
    say(scene->topic, "a2", "anna");
    say(scene->topic, "b3", "ben");
    settle(scene);
    assert_heard(heard, "a1 a2 ");
    assert_heard(all, "a1 b1 b2 a2 b3 ");
    say(scene->topic, "b4", "ben");
    say(scene->topic, "a3", "anna");
    settle(scene);
    assert_heard(heard, "a1 a2 a3 ");
}

/* --- states ------------------------------------------------------------------------------- */

static void a_late_reader_gets_the_newest_state_of_each(void **state) {
    struct scene *scene = *state;
    open_topic(scene, TOPIC_STATE, 100);
    say(scene->topic, "a1", "a");
    say(scene->topic, "b1", "b");
    say(scene->topic, "a2", "a");
    const struct heard *heard = listen(scene, 0, TOPIC_LATEST, 0);
    say(scene->topic, "b2", "b");
    say(scene->topic, "b3", "b");
    settle(scene);
    assert_heard(heard, "b1 a2 b2 b3 ");
}

static void superseded_states_go_and_the_newest_stay(void **state) {
    struct scene *scene = *state;
    open_topic(scene, TOPIC_STATE, 3);
    say(scene->topic, "rare", "rare");
    for (int i = 0; i < 20; i++) say(scene->topic, i == 19 ? "last" : "often", "often");
    const struct heard *heard = listen(scene, 0, TOPIC_LATEST, 0);
    settle(scene);
    assert_heard(heard, "rare last ");
}

/* Of states a slow reader misses what was superseded; it is not lost. */
static void a_slow_reader_of_states_skips(void **state) {
    struct scene *scene = *state;
    char word[WORD_BYTES];
    open_topic(scene, TOPIC_STATE, 4);
    struct heard *slow = listen(scene, 0, TOPIC_LATEST, 0);
    slow->slow = true;
    slow->queued = TOPIC_HIGH_BYTES;
    for (int i = 0; i < 100; i++) {
        snprintf(word, sizeof(word), "%d", i);
        say(scene->topic, word, "health");
        settle(scene);
    }
    assert_heard(slow, "");
    assert_int_equal(slow->low, TOPIC_LOW_BYTES);
    slow->queued = 0;
    topic_reader_drained(&slow->reader);
    settle(scene);
    assert_int_equal(slow->lost, 0);
    assert_true(str_ends(buf_str(&slow->got), STR(" 99 ")));
    assert_true(slow->got.len <= 4 * 3);
}

/* --- slow readers ------------------------------------------------------------------------- */

/* B2: the slow one is lost when the window has passed it; the others get everything. */
static void a_slow_reader_is_dropped_at_no_cost_to_others(void **state) {
    struct scene *scene = *state;
    open_topic(scene, TOPIC_EVENTS, 2000);
    struct heard *slow = listen(scene, 0, TOPIC_LIVE, 0);
    slow->slow = slow->stops = true;
    for (size_t i = 1; i < 100; i++) listen(scene, i, TOPIC_LIVE, 0);
    char word[WORD_BYTES];
    for (unsigned i = 0; i < 10000; i++) {
        snprintf(word, sizeof(word), "%08u", i);
        say(scene->topic, word, "");
        if (i % 100 == 0) settle(scene);
    }
    settle(scene);
    assert_int_equal(slow->lost, 1);
    assert_int_equal(slow->reader.state, TOPIC_READER_OVER);
    assert_true(slow->queued < TOPIC_HIGH_BYTES + TOPIC_TURN_BYTES);
    for (size_t i = 1; i < 100; i++) {
        assert_int_equal(scene->heard[i].lost, 0);
        assert_int_equal(scene->heard[i].got.len, 10000 * 9);
        assert_true(str_starts(buf_str(&scene->heard[i].got), STR("00000000 00000001 ")));
    }
    assert_true(topic_bytes(scene->topic) <= 2000 * FRAME_BYTES);
}

static void a_reader_that_drains_goes_on(void **state) {
    struct scene *scene = *state;
    open_topic(scene, TOPIC_EVENTS, 100000);
    struct heard *slow = listen(scene, 0, TOPIC_LIVE, 0);
    slow->slow = true;
    char word[WORD_BYTES];
    for (unsigned i = 0; i < 5000; i++) {
        snprintf(word, sizeof(word), "%08u", i);
        say(scene->topic, word, "");
    }
    size_t drains = 0;
    for (settle(scene); slow->low; settle(scene), drains++) {
        slow->low = slow->queued = 0;
        topic_reader_drained(&slow->reader);
    }
    assert_true(drains > 2);
    assert_int_equal(slow->got.len, 5000 * 9);
    assert_int_equal(slow->lost, 0);
}

static void bytes_bound_the_window_too(void **state) {
    struct scene *scene = *state;
    scene->topic = topic_new(&(struct topic_options){TOPIC_EVENTS, 3 * FRAME_BYTES, 1000, 1});
    for (int i = 0; i < 50; i++) say(scene->topic, "eightlet", "");
    assert_int_equal(topic_bytes(scene->topic), 3 * FRAME_BYTES);
    const struct heard *heard = listen(scene, 0, TOPIC_AFTER, 47);
    settle(scene);
    assert_heard(heard, "eightlet eightlet eightlet ");
}

/* --- beginning and ending ----------------------------------------------------------------- */

static void a_reader_may_stop_at_any_time(void **state) {
    struct scene *scene = *state;
    open_topic(scene, TOPIC_EVENTS, 100);
    struct heard *never = &scene->heard[9];
    topic_reader_stop(&never->reader);
    const struct heard *first = listen(scene, 0, TOPIC_LIVE, 0);
    topic_reader_stop(&scene->heard[0].reader); /* in the turn that it began in */
    say(scene->topic, "a", "");
    settle(scene);
    assert_heard(first, "");
    const struct heard *second = listen(scene, 1, TOPIC_LIVE, 0);
    say(scene->topic, "b", "");
    topic_reader_stop(&scene->heard[1].reader); /* with the mail on its way */
    const struct heard *third = listen(scene, 2, TOPIC_LIVE, 0);
    say(scene->topic, "c", "");
    settle(scene);
    assert_heard(second, "");
    assert_heard(third, "c ");
    assert_true(topic_is_read(scene->topic));
    topic_reader_stop(&scene->heard[2].reader);
    topic_reader_stop(&scene->heard[2].reader);
    assert_false(topic_is_read(scene->topic));
}

static void a_reader_that_ends_gets_what_is_there(void **state) {
    struct scene *scene = *state;
    open_topic(scene, TOPIC_EVENTS, 100);
    struct heard *heard = listen(scene, 0, TOPIC_LIVE, 0);
    settle(scene);
    say(scene->topic, "a", "");
    say(scene->topic, "b", "");
    topic_reader_flush(&heard->reader, TOPIC_HIGH_BYTES);
    assert_heard(heard, "a b ");
    topic_reader_stop(&heard->reader);
    topic_reader_flush(&heard->reader, TOPIC_HIGH_BYTES);
    settle(scene);
    assert_heard(heard, "a b ");
}

/* Idle, with events on their way, slow, late, or leaving in the last call. */
static void the_end_of_a_topic_comes_after_its_last_event(void **state) {
    struct scene *scene = *state;
    open_topic(scene, TOPIC_EVENTS, 8);
    struct heard *idle = listen(scene, 0, TOPIC_LIVE, 0);
    struct heard *slow = listen(scene, 1, TOPIC_LIVE, 0);
    struct heard *leaving = listen(scene, 2, TOPIC_LIVE, 0);
    struct heard *gone = listen(scene, 3, TOPIC_LIVE, 0);
    leaving->stops = true;
    settle(scene);
    slow->slow = true;
    slow->queued = TOPIC_HIGH_BYTES;
    say(scene->topic, "a", "");
    topic_reader_stop(&gone->reader);
    topic_end(scene->topic, ERR_CANCELLED, "it is closed");
    assert_int_equal(idle->ended, 0); /* never from inside */
    settle(scene);
    struct heard *late = listen(scene, 4, TOPIC_AFTER, 0);
    settle(scene);
    struct heard *const told[] = {idle, leaving, late};
    for (size_t i = 0; i < ARRAY_LEN(told); i++) {
        assert_heard(told[i], "a ");
        assert_int_equal(told[i]->ended, 1);
        assert_int_equal(told[i]->ended_code, ERR_CANCELLED);
        assert_int_equal(told[i]->turned, 1);
    }
    assert_int_equal(slow->ended + gone->ended, 0);
    slow->queued = 0;
    topic_reader_drained(&slow->reader);
    settle(scene);
    assert_heard(slow, "a ");
    assert_int_equal(slow->ended, 1);
}

static void an_owner_learns_how_far_its_reader_is(void **state) {
    struct scene *scene = *state;
    open_topic(scene, TOPIC_EVENTS, 8);
    for (const char *word = "abc"; *word; word++) say(scene->topic, (char[]){*word, 0}, "");
    struct heard *one = listen(scene, 0, TOPIC_AFTER, 0);
    one->slow = true;
    one->queued = TOPIC_HIGH_BYTES;
    settle(scene);
    assert_int_equal(one->turned, 0);
    one->queued = 0;
    topic_reader_drained(&one->reader);
    settle(scene);
    assert_int_equal(one->turned, 3);
}

static void a_dead_transport_is_left_alone(void **state) {
    struct scene *scene = *state;
    open_topic(scene, TOPIC_EVENTS, 100);
    struct heard *heard = listen(scene, 0, TOPIC_LIVE, 0);
    heard->closed = true;
    say(scene->topic, "a", "");
    settle(scene);
    assert_heard(heard, "");
    assert_int_equal(heard->lost, 0);
}

/* Readers, the topic's owner and the loop end in any order. */
static void a_view_outlives_the_owners_reference(void **state) {
    struct scene *scene = *state;
    open_topic(scene, TOPIC_EVENTS, 100);
    const struct heard *heard = listen(scene, 0, TOPIC_LIVE, 0);
    say(scene->topic, "a", "");
    topic_unref(scene->topic);
    scene->topic = NULL;
    settle(scene);
    assert_heard(heard, "a ");
}

static void readers_take_turns(void **state) {
    struct scene *scene = *state;
    open_topic(scene, TOPIC_EVENTS, 10000);
    char word[WORD_BYTES];
    for (unsigned i = 0; i < 3000; i++) {
        snprintf(word, sizeof(word), "%08u", i);
        say(scene->topic, word, "");
    }
    const struct heard *late = listen(scene, 0, TOPIC_AFTER, 0);
    const struct heard *other = listen(scene, 1, TOPIC_AFTER, 2999);
    /* One turn of the loop is one pass, in which both have more turns than they need. */
    loop_turn(scene->loop);
    assert_int_equal(late->got.len, 3000 * 9);
    assert_heard(other, "00002999 ");
}

static void reader_states_match_the_drawing(void **state) {
    static const char *const drawn[] = {
        "new ready",  "new over",   "ready ready", "ready idle", "ready full",
        "ready over", "idle ready", "idle over",   "full ready", "full over",
    };
    (void)state;
    assert_moves(topic_reader_states, TOPIC_READER_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

/* --- threads ------------------------------------------------------------------------------ */

#define LOOPS 3
#define PUBLISHERS 3
#define WORDS 2000

struct side {
    struct topic *topic;
    struct loop *loop;
    struct heard heard;
    struct timer look;
    pthread_t thread;
};

static void on_look(void *ctx) {
    struct side *side = ctx;
    if (side->heard.got.len >= PUBLISHERS * WORDS * 9) {
        topic_reader_stop(&side->heard.reader);
        loop_stop(side->loop);
    } else {
        timer_start(&side->look, 1);
    }
}

static void *run_loop(void *ctx) {
    struct side *side = ctx;
    side->loop = loop_new();
    timer_init(&side->look, side->loop, on_look, side);
    timer_start(&side->look, 1);
    topic_reader_start(&side->heard.reader, side->topic, side->loop, TOPIC_AFTER, 0, &wire,
                       &side->heard);
    loop_run(side->loop);
    loop_free(side->loop);
    return NULL;
}

static void *run_publisher(void *topic) {
    for (int i = 0; i < WORDS; i++) say(topic, "eightlet", "");
    return NULL;
}

/* For ThreadSanitizer: every loop hears all that every thread says. */
static void loops_and_publishers_share_a_topic(void **state) {
    struct scene *scene = *state;
    static struct side sides[LOOPS];
    pthread_t publishers[PUBLISHERS];
    scene->topic =
        topic_new(&(struct topic_options){TOPIC_EVENTS, MIB, 2 * PUBLISHERS * WORDS, 1});
    for (size_t i = 0; i < LOOPS; i++) {
        sides[i].topic = scene->topic;
        buf_init(&sides[i].heard.got, MIB);
        pthread_create(&sides[i].thread, NULL, run_loop, &sides[i]);
    }
    for (size_t i = 0; i < PUBLISHERS; i++)
        pthread_create(&publishers[i], NULL, run_publisher, scene->topic);
    for (size_t i = 0; i < PUBLISHERS; i++) pthread_join(publishers[i], NULL);
    for (size_t i = 0; i < LOOPS; i++) {
        pthread_join(sides[i].thread, NULL);
        assert_int_equal(sides[i].heard.got.len, PUBLISHERS * WORDS * 9);
        assert_int_equal(sides[i].heard.lost, 0);
        buf_done(&sides[i].heard.got);
    }
}

/* What a topic never had, because its source had dropped it, is as lost as what it dropped. */
static void what_is_skipped_is_lost_to_those_who_needed_it(void **state) {
    struct scene *scene = *state;
    open_topic(scene, TOPIC_EVENTS, 8);
    say(scene->topic, "a", "");
    const struct heard *reads = listen(scene, 0, TOPIC_AFTER, 0);
    settle(scene);
    assert_heard(reads, "a ");
    assert_int_equal(topic_reader_cursor(&reads->reader), 1);
    topic_lose(scene->topic, 1); /* nothing is missing: only the window is emptied */
    say(scene->topic, "b", "");
    settle(scene);
    assert_heard(reads, "a b ");
    topic_lose(scene->topic, 9);
    assert_int_equal(say(scene->topic, "j", ""), 10);
    settle(scene);
    assert_heard(reads, "a b ");
    assert_int_equal(reads->lost, 1);
    assert_int_equal(topic_reader_cursor(&reads->reader), 2);
    const struct heard *late = listen(scene, 1, TOPIC_AFTER, 9);
    settle(scene);
    assert_heard(late, "j ");
    assert_int_equal(topic_last(scene->topic), 10);
}

/* One byte more than a message may have. */
static void an_event_that_is_too_long_is_lost_and_the_next_one_is_not(void **state) {
    struct scene *scene = *state;
    const size_t len = 4 * MIB - 4; /* and five bytes of tag and length */
    char *word = mem_alloc(len + 1);
    memset(word, 'x', len);
    word[len] = '\0';
    open_topic(scene, TOPIC_EVENTS, 8 * MIB);
    const struct heard *reads = listen(scene, 0, TOPIC_LIVE, 0);
    assert_int_equal(say(scene->topic, word, ""), 1);
    settle(scene);
    assert_int_equal(reads->lost, 1);
    assert_int_equal(reads->got.len, 0);
    const struct heard *late = listen(scene, 1, TOPIC_LIVE, 0);
    assert_int_equal(say(scene->topic, "b", ""), 2);
    settle(scene);
    assert_heard(late, "b ");
    assert_int_equal(late->lost, 0);
    word[len - 1] = '\0';
    assert_int_equal(say(scene->topic, word, ""), 3);
    assert_true(topic_bytes(scene->topic) > 4 * MIB);
    free(word);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(readers_get_what_comes_in_order),
        TEST(replay_joins_live_without_a_gap),
        TEST(a_cursor_says_where_to_begin),
        TEST(an_event_that_is_too_long_is_lost_and_the_next_one_is_not),
        TEST(what_is_skipped_is_lost_to_those_who_needed_it),
        TEST(a_topic_may_begin_anywhere),
        TEST(a_reader_gets_only_what_it_wants),
        TEST(a_late_reader_gets_the_newest_state_of_each),
        TEST(superseded_states_go_and_the_newest_stay),
        TEST(a_slow_reader_of_states_skips),
        TEST(a_slow_reader_is_dropped_at_no_cost_to_others),
        TEST(a_reader_that_drains_goes_on),
        TEST(bytes_bound_the_window_too),
        TEST(a_reader_may_stop_at_any_time),
        TEST(a_reader_that_ends_gets_what_is_there),
        TEST(the_end_of_a_topic_comes_after_its_last_event),
        TEST(an_owner_learns_how_far_its_reader_is),
        TEST(a_dead_transport_is_left_alone),
        TEST(a_view_outlives_the_owners_reference),
        TEST(readers_take_turns),
        TEST(reader_states_match_the_drawing),
        TEST(loops_and_publishers_share_a_topic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
