/* What --help prints, as manual pages and as the words that a shell completes: made of the text
 * of --help, so none of it can disagree. */
#include "cli/command.h"
#include "cli/completion.h"
#include "cli/help_text.h"
#include "cli/manual.h"

static struct said said;

#define HELP                                                                                   \
    "weir fish new NAME [--size N]\n"                                                          \
    "weir fish [list] [--json]\n\n"                                                            \
    "Make a fish -- or list them; 'C:\\fish' and --deep are no commands of roff.\n"            \
    ".hidden is a file.\n\n"                                                                   \
    "  --size N, --length N   how large it is\n"                                               \
    "  --deep           for water; --salt too\n\n"                                             \
    "Settings (flags beat the environment):\n\n"                                               \
    "  --http ADDR             the listener\n"                                                 \
    "                          [WEIR_HTTP; default off]\n"                                     \
    "  --json                  not shown twice\n"

static void a_text_of_help_has_three_parts(void **state) {
    (void)state;
    struct help_text text = help_text_read(STR(HELP));
    assert_str(text.usage, "weir fish new NAME [--size N]\nweir fish [list] [--json]");
    assert_true(str_starts(text.body, STR("Make a fish")));
    assert_true(str_ends(text.body, STR("--salt too")));
    assert_true(str_starts(text.settings, STR("Settings (flags")));

    text = help_text_read(STR("weir fish\n"));
    assert_str(text.usage, "weir fish\n");
    assert_true(text.body.len == 0 && text.settings.len == 0);
    text = help_text_read(STR("weir fish\n\nSettings: none\n"));
    assert_true(text.body.len == 0);
    assert_str(text.settings, "Settings: none");
}

static void words_are_acts_then_flags_each_once(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 4 * KIB);
    completion_words(STR("fish"), STR(HELP), &out);
    assert_str(buf_str(&out), "new\t\nlist\t\n--size\thow large it is\n"
                              "--deep\tfor water; --salt too\n--json\t\n--length\t\n--salt\t\n"
                              "--http\tthe listener\n--help\tsay what this does\n");
    buf_done(&out);
}

/* However the text is cut, each line stays a word, a tab and a meaning. */
static void words_stay_words_however_the_text_is_cut(void **state) {
    (void)state;
    struct str all = STR(HELP);
    for (size_t cut = 0; cut <= all.len; cut++) {
        struct buf out;
        buf_init(&out, 4 * KIB);
        completion_words(STR("fish"), str_head(all, cut), &out);
        struct str rest = buf_str(&out), line;
        while (help_text_line(&rest, &line)) {
            struct str word = str_split(line, '\t', &line);
            assert_true(word.len > 0 && line.at && str_is_plain(word, "-"));
        }
        buf_done(&out);
    }
}

static void a_page_has_no_command_of_roff_in_its_words(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 16 * KIB);
    manual_write_command(&(struct manual_page){.name = STR("weir-fish"),
                                               .what = STR("fish"),
                                               .help = STR(HELP),
                                               .settings_apart = true},
                         &out);
    struct str page = buf_str(&out);
    assert_true(str_starts(page, STR(".TH \"WEIR-FISH\" 1 ")));
    assert_true(str_find(page, STR("\n'C:")) == page.len);
    assert_true(str_find(page, STR("'C:\\efish' and \\-\\-deep are")) < page.len);
    assert_true(str_find(page, STR("\n\\&.hidden is a file.\n")) < page.len);
    assert_true(str_find(page, STR("\n.nf\n  \\-\\-size N, ")) < page.len);
    assert_true(str_find(page, STR("WEIR_HTTP")) == page.len); /* in weir.yaml(5) */
    buf_done(&out);
}

static void settings_become_entries_of_a_page(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 16 * KIB);
    manual_write_settings(
        STR("### Listening\n\n| file key | flag | environment | default | "
            "meaning |\n|---|---|---|---|---|\n"
            "| `listen.http` | `--http` | `WEIR_HTTP` | off | the listener |\n"
            "| `listen.old` |  | `OLD` | none | only a variable |\n"
            "\n### Entries of `tools`\n\n| key | value | meaning |\n"
            "|---|---|---|\n| `name` | TEXT | its name |\n"),
        &out);
    struct str page = buf_str(&out);
    assert_true(str_find(page, STR(".SH \"Listening\"\n.TP\n.B listen.http\nthe listener\n.br\n"
                                   "\\-\\-http; WEIR_HTTP; default off\n")) < page.len);
    assert_true(str_find(page, STR("only a variable\n.br\nOLD; default none\n")) < page.len);
    assert_true(str_find(page, STR(".SH \"Entries of tools\"\n.TP\n.B name\nits name\n.br\n"
                                   "value: TEXT\n")) < page.len);
    buf_done(&out);
}

static void every_command_has_a_page_and_words(void **state) {
    (void)state;
    size_t count;
    const struct command *all = cli_commands(&count);
    for (size_t i = 0; i < count; i++) {
        weir(&said, NULL, "help", all[i].name, "--man");
        assert_int_equal(said.code, EXIT_DONE);
        assert_string_equal(said.err, "");
        assert_has(said.out, "\n.SH \"SYNOPSIS\"\n.nf\nweir ");
        weir(&said, NULL, "help", all[i].name, "--words");
        assert_int_equal(said.code, EXIT_DONE);
        assert_has(said.out, "--help\t");
        weir(&said, NULL, "help", all[i].name);
        assert_int_equal(said.code, EXIT_DONE);
        assert_memory_equal(said.out, "weir ", 5);
    }
    weir(&said, NULL, "help", "--words");
    for (size_t i = 0; i < count; i++) assert_has(said.out, all[i].name);
    weir(&said, NULL, "help", "--man");
    assert_has(said.out, "\n.SH \"COMMANDS\"\n");
    assert_has(said.out, "\n.SH \"EXIT STATUS\"\n");
    weir(&said, NULL, "help", "weir.yaml", "--man");
    assert_has(said.out, "\n.B listen.http\n");
}

static void help_of_nothing_is_wrong_usage(void **state) {
    (void)state;
    weir(&said, NULL, "help", "sevre");
    assert_int_equal(said.code, EXIT_USAGE);
    assert_has(said.err, "no command 'sevre'; did you mean 'serve'?");
    weir(&said, NULL, "help", "serve", "run");
    assert_int_equal(said.code, EXIT_USAGE);
    assert_has(said.err, "weir help takes one command");
    weir(&said, NULL, "help", "--mam");
    assert_int_equal(said.code, EXIT_USAGE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, home_setup, home_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_text_of_help_has_three_parts),
        TEST(words_are_acts_then_flags_each_once),
        TEST(words_stay_words_however_the_text_is_cut),
        TEST(a_page_has_no_command_of_roff_in_its_words),
        TEST(settings_become_entries_of_a_page),
        TEST(every_command_has_a_page_and_words),
        TEST(help_of_nothing_is_wrong_usage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
