#include "cli/terminal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define PASTE_ON "\x1b[?2004h"
#define PASTE_OFF "\x1b[?2004l"

/* Signal handlers read it. */
static struct {
    struct termios usual, edits;
    volatile sig_atomic_t begun, pastes, resized, continued;
} terminal;

/* Those whose handlers give the terminal back; the first three end the process. */
static const int given_back[] = {SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
static struct sigaction before[ARRAY_LEN(given_back)], before_winch, before_cont;

bool terminal_can_edit(void) {
    const char *kind = getenv("TERM"); /* NOLINT(concurrency-mt-unsafe): one thread so far */
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO) && kind && kind[0] &&
           strcmp(kind, "dumb") != 0;
}

/* --- in handlers: asynchronous-signal-safe -------------------------------------------------- */

static void terminal_give_back(void) {
    if (terminal.pastes) {
        ssize_t wrote = write(STDERR_FILENO, PASTE_OFF, strlen(PASTE_OFF));
        (void)wrote;
    }
    tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal.usual);
}

/* As if there were no handler: the process ends or stops here. */
static void happen(int number) {
    struct sigaction usual = {.sa_handler = SIG_DFL}, own;
    sigset_t one;
    sigemptyset(&usual.sa_mask);
    sigaction(number, &usual, &own);
    raise(number);
    sigemptyset(&one);
    sigaddset(&one, number);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    sigaction(number, &own, NULL);
}

static void on_ending(int number) {
    int error = errno;
    if (terminal.begun) terminal_give_back();
    happen(number);
    terminal.continued = 1; /* it was stopped, or could not be: there is no shell to stop for */
    errno = error;
}

static void on_winch(int number) {
    (void)number;
    terminal.resized = 1;
}

static void on_continued(int number) {
    (void)number;
    terminal.continued = 1;
}

/* --- beginning and ending ------------------------------------------------------------------- */

static void handle(int number, void (*handler)(int number), struct sigaction *ret_before) {
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, ret_before);
}

/* A signal that was ignored, as SIGHUP under nohup, stays ignored. */
static void handle_all(void) {
    for (size_t i = 0; i < ARRAY_LEN(given_back); i++) {
        handle(given_back[i], on_ending, &before[i]);
        if (before[i].sa_handler == SIG_IGN) sigaction(given_back[i], &before[i], NULL);
    }
    handle(SIGWINCH, on_winch, &before_winch);
    handle(SIGCONT, on_continued, &before_cont);
}

static void handle_none(void) {
    for (size_t i = 0; i < ARRAY_LEN(given_back); i++)
        sigaction(given_back[i], &before[i], NULL);
    sigaction(SIGWINCH, &before_winch, NULL);
    sigaction(SIGCONT, &before_cont, NULL);
}

static bool terminal_take(void) {
    return tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal.edits) == 0;
}

bool terminal_begin(void) {
    if (tcgetattr(STDIN_FILENO, &terminal.usual) != 0) return false;
    terminal.edits = terminal.usual;
    terminal.edits.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
    terminal.edits.c_iflag &= ~(tcflag_t)(ICRNL | INLCR | IGNCR | IXON);
    terminal.edits.c_cc[VMIN] = 1;
    terminal.edits.c_cc[VTIME] = 0;
    terminal.begun = 1;
    terminal.pastes = terminal.resized = terminal.continued = 0;
    handle_all();
    if (terminal_take()) return true;
    terminal.begun = 0;
    handle_none();
    return false;
}

void terminal_end(void) {
    terminal_give_back();
    terminal.begun = terminal.pastes = 0;
    handle_none();
}

void terminal_paste_mode(void) {
    terminal.pastes = 1;
    terminal_write(STR(PASTE_ON));
}

/* --- using it ------------------------------------------------------------------------------- */

void terminal_size(size_t *ret_columns, size_t *ret_rows) {
    struct winsize size;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0;
    *ret_columns = known && size.ws_col ? size.ws_col : 80;
    *ret_rows = known && size.ws_row ? size.ws_row : 24;
}

void terminal_write(struct str bytes) {
    while (bytes.len) {
        ssize_t wrote = write(STDERR_FILENO, bytes.at, bytes.len);
        if (wrote < 0 && errno != EINTR) return;
        if (wrote > 0) bytes = str_skip(bytes, (size_t)wrote);
    }
}

bool terminal_has_input(void) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, 0) == 1;
}

/* --- what happens meanwhile ----------------------------------------------------------------- */

void terminal_signals(sigset_t *ret) {
    sigemptyset(ret);
    sigaddset(ret, SIGWINCH);
    sigaddset(ret, SIGCONT);
}

bool terminal_has_changed(void) {
    return terminal.begun && (terminal.resized || terminal.continued);
}

bool terminal_continue(void) {
    bool stopped = terminal.continued;
    terminal.resized = terminal.continued = 0;
    if (!stopped) return false;
    (void)
        terminal_take(); /* in the background this stops the process again, until it is wanted */
    if (terminal.pastes) terminal_write(STR(PASTE_ON));
    return true;
}
