/* Lines as the terminal gives them: its own editing, its own Ctrl-C and Ctrl-D. */
#include "cli/chat.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#define LINE_MAX_BYTES (4 * MIB)
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

void chat_input_init(struct chat_input *input) {
    struct sigaction action = {.sa_handler = on_interrupt}; /* read() is cut short by it */
    *input = (struct chat_input){.terminal = isatty(STDIN_FILENO)};
    lines_init(&input->lines, LINE_MAX_BYTES);
    buf_init(&input->line, LINE_MAX_BYTES);
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* a reader that left is an error of what is printed */
}

void chat_input_done(struct chat_input *input) {
    lines_done(&input->lines);
    buf_done(&input->line);
}

/* Wait until there is something to read. SIGINT is blocked but while waiting, so that none is
 * missed. False: it came. */
static bool wait_for_input(void) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    sigset_t interrupt, before;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, &before);
    bool came = interrupts > 0;
    while (!came && ppoll(&input, 1, NULL, &before) < 0 && errno == EINTR)
        came = interrupts > 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return !came;
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

enum chat_line chat_input_line(struct chat_input *input, const char *prompt, struct str *ret) {
    struct str line;
    buf_clear(&input->line);
    chat_interrupts_forget();
    if (input->terminal) fprintf(stderr, "%s", prompt);
    while (true) {
        enum lines_found found = lines_next(&input->lines, &line);
        if (found == LINES_ONE && buf_append(&input->line, line)) break;
        if (found == LINES_TOO_LONG) input->ended = true;
        if (input->ended) {
            if (!take_rest(input)) return CHAT_OVER;
            break;
        }
        if (!wait_for_input()) return CHAT_INTERRUPTED;
        read_more(input);
    }
    *ret = buf_str(&input->line);
    return CHAT_LINE;
}

void chat_input_drop(struct chat_input *input) {
    struct str line;
    if (!input->terminal || input->ended) return;
    tcflush(STDIN_FILENO, TCIFLUSH);
    if (lines_waiting(&input->lines) && !lines_feed(&input->lines, STR("\n"))) return;
    while (lines_next(&input->lines, &line) == LINES_ONE) continue;
}
