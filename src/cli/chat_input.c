/* Lines of a person, edited here, or as a terminal without cursor movements and a pipe give them. */
#include "cli/chat.h"

#include "cli/line_draw.h"
#include "cli/terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#define READ_BYTES (16 * KIB)

static volatile sig_atomic_t interrupts;

static void on_interrupt(int number) {
    (void)number;
    if (interrupts < 100) interrupts = interrupts + 1;
}

int chat_interrupts(void) {
    return interrupts;
}

void chat_interrupts_forget(void) {
    interrupts = 0;
}

static void open_history(struct chat_input *input) {
    struct buf path;
    buf_init(&path, 8 * KIB);
    if (input->edits) line_history_path(&path);
    line_history_init(&input->history, buf_str(&path));
    buf_done(&path);
}

void chat_input_init(struct chat_input *input, bool from_program) {
    struct sigaction action = {.sa_handler = on_interrupt}; /* read() is cut short by it */
    *input = (struct chat_input){.terminal = isatty(STDIN_FILENO)};
    input->edits = input->terminal && !from_program && terminal_can_edit();
    lines_init(&input->lines, CHAT_LINE_MAX_BYTES);
    buf_init(&input->line, CHAT_LINE_MAX_BYTES);
    buf_init(&input->ahead, CHAT_LINE_MAX_BYTES);
    open_history(input);
    line_edit_init(&input->edit, &input->history, CHAT_LINE_MAX_BYTES);
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* a reader that left is an error of what is printed */
}

void chat_input_done(struct chat_input *input) {
    lines_done(&input->lines);
    buf_done(&input->line);
    buf_done(&input->ahead);
    line_edit_done(&input->edit);
    line_history_done(&input->history);
}

void chat_input_remember(struct chat_input *input, struct str line) {
    if (input->edits) line_history_add(&input->history, line);
}

/* Wait until there is something to read. SIGINT is blocked but while waiting, so that none is
 * missed; so are those that say that the terminal has changed. */
enum waited { WAITED_INPUT, WAITED_INTERRUPT, WAITED_CHANGE };

static enum waited wait_for_input(void) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    sigset_t held, before;
    enum waited waited = WAITED_INPUT;
    terminal_signals(&held);
    sigaddset(&held, SIGINT);
    pthread_sigmask(SIG_BLOCK, &held, &before);
    do {
        if (interrupts)
            waited = WAITED_INTERRUPT;
        else if (terminal_has_changed())
            waited = WAITED_CHANGE;
    } while (waited == WAITED_INPUT && ppoll(&input, 1, NULL, &before) < 0 && errno == EINTR);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return waited;
}

static void read_more(struct chat_input *input) {
    char room[READ_BYTES];
    ssize_t got = read(STDIN_FILENO, room, sizeof(room));
    if (got < 0 && errno == EINTR) return;
    if (got <= 0 || !lines_feed(&input->lines, str_of(room, (size_t)got))) input->ended = true;
}

/* The last line of a file may have no end, and so may one that Ctrl-D ended. */
static bool take_rest(struct chat_input *input) {
    size_t rest = lines_waiting(&input->lines);
    struct str line;
    if (rest == 0 || !lines_feed(&input->lines, STR("\n"))) return false;
    if (lines_next(&input->lines, &line) != LINES_ONE) return false;
    buf_append(&input->line, line);
    return true;
}

/* --- edited ------------------------------------------------------------------------------- */

static void show_edited(struct chat_input *input, const char *prompt,
                        struct line_screen *screen) {
    struct buf out;
    buf_init(&out, 16 * CHAT_LINE_MAX_BYTES);
    terminal_size(&screen->columns, &screen->rows);
    line_draw(&input->edit, str_from(prompt), screen, &out);
    terminal_write(buf_str(&out));
    buf_done(&out);
}

/* The cursor goes below the text. */
static void leave_edited(struct chat_input *input, const char *prompt,
                         struct line_screen *screen) {
    input->edit.cursor = input->edit.text.len;
    show_edited(input, prompt, screen);
    terminal_end();
    terminal_write(STR("\n"));
}

static void clear_screen(struct line_screen *screen) {
    terminal_write(STR("\x1b[H\x1b[2J"));
    screen->drawn = false;
}

static void read_edited(struct chat_input *input) {
    char *room = buf_room(&input->ahead, READ_BYTES);
    ssize_t got = room ? read(STDIN_FILENO, room, READ_BYTES) : 0;
    if (got < 0 && errno == EINTR) return;
    if (got <= 0)
        input->ended = true;
    else
        buf_grew(&input->ahead, (size_t)got);
}

/* After a stop the screen belongs to another program: what is on it stays. */
static void change_edited(struct line_screen *screen) {
    if (terminal_continue()) screen->drawn = false;
}

static enum line_edit_event eat_ahead(struct chat_input *input) {
    struct str rest = buf_str(&input->ahead);
    enum line_edit_event event = line_edit_eat(&input->edit, &rest);
    buf_drop(&input->ahead, input->ahead.len - rest.len);
    return event;
}

/* Wait for more keys. False: the line is over, as *ret_end says. */
static bool wait_for_keys(struct chat_input *input, struct line_screen *screen,
                          enum chat_line *ret_end) {
    enum waited waited = wait_for_input();
    *ret_end = waited == WAITED_INTERRUPT ? CHAT_INTERRUPTED : CHAT_OVER;
    if (waited == WAITED_CHANGE) change_edited(screen);
    if (waited == WAITED_INPUT) read_edited(input);
    return waited != WAITED_INTERRUPT && !input->ended;
}

/* It is drawn when nothing more waits to be read: a long paste is drawn once. */
static enum chat_line edit_line(struct chat_input *input, const char *prompt) {
    struct line_screen screen = {.drawn = false};
    enum chat_line end = CHAT_OVER;
    enum line_edit_event event;
    line_edit_begin(&input->edit);
    show_edited(input, prompt, &screen);
    terminal_paste_mode();
    do {
        event = eat_ahead(input);
        if (event == LINE_CLEAR) clear_screen(&screen);
        if (event == LINE_CLEAR || (event == LINE_MORE && !terminal_has_input()))
            show_edited(input, prompt, &screen);
    } while (event == LINE_CLEAR ||
             (event == LINE_MORE && wait_for_keys(input, &screen, &end)));
    leave_edited(input, prompt, &screen);
    if (event == LINE_ENTERED) return CHAT_LINE;
    return event == LINE_OVER ? CHAT_OVER : end;
}

/* --- as they come ------------------------------------------------------------------------- */

static enum chat_line plain_line(struct chat_input *input, const char *prompt) {
    struct str line;
    if (input->terminal) fprintf(stderr, "%s", prompt);
    while (true) {
        enum lines_found found = lines_next(&input->lines, &line);
        if (found == LINES_ONE && buf_append(&input->line, line)) break;
        if (found == LINES_TOO_LONG) input->ended = input->too_long = true;
        if (input->ended) {
            if (!take_rest(input)) return CHAT_OVER;
            break;
        }
        if (wait_for_input() == WAITED_INTERRUPT) return CHAT_INTERRUPTED;
        read_more(input);
    }
    return CHAT_LINE;
}

enum chat_line chat_input_line(struct chat_input *input, const char *prompt, struct str *ret) {
    enum chat_line came;
    buf_clear(&input->line);
    chat_interrupts_forget();
    if (input->edits && !input->ended && terminal_begin()) {
        came = edit_line(input, prompt);
        buf_append(&input->line, buf_str(&input->edit.text));
    } else {
        came = plain_line(input, prompt);
    }
    *ret = buf_str(&input->line);
    return came;
}

const char *chat_input_gap(const struct chat_input *input) {
    return input->edits ? "" : "\n";
}

void chat_input_drop(struct chat_input *input) {
    struct str line;
    if (!input->terminal || input->ended) return;
    tcflush(STDIN_FILENO, TCIFLUSH);
    buf_clear(&input->ahead);
    if (lines_waiting(&input->lines) && !lines_feed(&input->lines, STR("\n"))) return;
    while (lines_next(&input->lines, &line) == LINES_ONE) continue;
}
