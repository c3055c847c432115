#include "client/upgrade.h"

#include "client/call.h"
#include "client/request_line.h"
#include "wire/websocket.h"

#define STATUS_LINE "HTTP/1.1 "

/* --- asking ------------------------------------------------------------------------------- */

/* Headers that the handshake itself makes. */
static bool is_ours(struct str name) {
    static const struct str ours[] = {STR_INIT("host"),         STR_INIT("connection"),
                                      STR_INIT("upgrade"),      STR_INIT("content-length"),
                                      STR_INIT("content-type"), STR_INIT("accept")};
    for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
        if (str_equal_nocase(name, ours[i])) return true;
    }
    static const struct str family = STR_INIT("sec-websocket-");
    return str_equal_nocase(str_head(name, family.len), family);
}

bool upgrade_append(const struct url *url, const struct http_header *headers,
                    size_t header_count, struct str key, struct buf *out, struct err *e) {
    buf_append(out, STR("GET "));
    url_append_target(url, out);
    buf_printf(out,
               " HTTP/1.1\r\nHost: " STR_FMT "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
               "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " STR_FMT "\r\n",
               STR_ARG(url->authority), STR_ARG(key));
    for (size_t i = 0; i < header_count; i++) {
        if (!request_check_header(&headers[i], e)) return false;
        if (is_ours(headers[i].name)) continue;
        buf_printf(out, STR_FMT ": " STR_FMT "\r\n", STR_ARG(headers[i].name),
                   STR_ARG(headers[i].value));
    }
    buf_append(out, STR("\r\n"));
    return buf_ok(out) || err_set(e, ERR_TOO_LARGE, "the request's head is too long");
}

/* --- reading the answer ------------------------------------------------------------------- */

static bool upgrade_is_digit(char byte) {
    return byte >= '0' && byte <= '9';
}

unsigned upgrade_status(struct str head) {
    struct str line = str_skip(head, sizeof(STATUS_LINE) - 1);
    if (!str_starts(head, STR(STATUS_LINE)) || line.len < 4) return 0;
    for (size_t i = 0; i < 3; i++) {
        if (!upgrade_is_digit(line.at[i])) return 0;
    }
    if (line.at[3] != ' ' && line.at[3] != '\r') return 0;
    unsigned status =
        (unsigned)((line.at[0] - '0') * 100 + (line.at[1] - '0') * 10 + (line.at[2] - '0'));
    return status >= 100 && status <= 599 ? status : 0;
}

/* What the lines have said so far. */
struct answer {
    struct str upgrade, accept;
    size_t upgrades, accepts;
    bool connection; /* it has the word "upgrade" */
    const char *odd; /* what must not be there */
};

/* Whether `list`, parts with commas between them, has this part. */
static bool list_has(struct str list, struct str part) {
    while (list.len) {
        size_t comma = str_find_byte(list, ',');
        if (str_equal_nocase(str_trim(str_head(list, comma)), part)) return true;
        list = str_skip(list, comma + 1);
    }
    return false;
}

static void answer_take(struct answer *answer, struct str name, struct str value) {
    if (str_equal_nocase(name, STR("upgrade"))) {
        answer->upgrade = value;
        answer->upgrades++;
    } else if (str_equal_nocase(name, STR("connection"))) {
        answer->connection |= list_has(value, STR("upgrade"));
    } else if (str_equal_nocase(name, STR("sec-websocket-accept"))) {
        answer->accept = value;
        answer->accepts++;
    } else if (str_equal_nocase(name, STR("sec-websocket-extensions"))) {
        answer->odd = "it uses an extension that was not offered";
    } else if (str_equal_nocase(name, STR("sec-websocket-protocol"))) {
        answer->odd = "it chose a subprotocol, and none was offered";
    } else if (str_equal_nocase(name, STR("transfer-encoding")) ||
               (str_equal_nocase(name, STR("content-length")) && !str_equal(value, STR("0")))) {
        answer->odd = "it announces a body";
    }
}

static bool upgrade_is_token(struct str text) {
    return text.len && str_is_plain(text, "!#$%&'*+-.^_`|~");
}

static bool upgrade_has_control(struct str text) {
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.at[i];
        if ((byte < ' ' && byte != '\t') || byte == 0x7f) return true;
    }
    return false;
}

/* "name: value". A line that continues the one before begins with a space, which is no name. */
static bool answer_line(struct answer *answer, struct str line) {
    size_t colon = str_find_byte(line, ':');
    if (colon == line.len || !upgrade_is_token(str_head(line, colon)) ||
        upgrade_has_control(line))
        return false;
    answer_take(answer, str_head(line, colon), str_trim(str_skip(line, colon + 1)));
    return true;
}

static bool upgrade_refuse(struct err *e, const char *why) {
    return err_set(e, ERR_UNAVAILABLE, "the server's answer opens no WebSocket: %s", why);
}

static bool answer_judge(const struct answer *answer, struct str key, struct err *e) {
    char accept[WEBSOCKET_ACCEPT_BYTES];
    websocket_accept(key, accept);
    if (answer->upgrades != 1 || !str_equal_nocase(answer->upgrade, STR("websocket")))
        return upgrade_refuse(e, "it needs the header 'Upgrade: websocket' once");
    if (!answer->connection)
        return upgrade_refuse(e, "it needs the header 'Connection: Upgrade'");
    if (answer->accepts != 1 || !str_equal(answer->accept, str_of(accept, sizeof(accept))))
        return upgrade_refuse(
            e, "its Sec-WebSocket-Accept does not answer our key; something between "
               "us and the server may have answered for it");
    return !answer->odd || upgrade_refuse(e, answer->odd);
}

bool upgrade_check(struct str head, struct str key, struct err *e) {
    struct answer answer = {.upgrades = 0};
    size_t first = str_find(head, STR("\r\n"));
    if (upgrade_status(head) != 101) return upgrade_refuse(e, "its status is not 101");
    if (upgrade_has_control(str_head(head, first)))
        return upgrade_refuse(e, "a line has a control character");
    for (head = str_skip(head, first + 2); head.len;) {
        size_t end = str_find(head, STR("\r\n"));
        struct str line = str_head(head, end);
        if (line.len == 0) break;
        if (!answer_line(&answer, line))
            return upgrade_refuse(e, "a line of its head is no header");
        head = str_skip(head, end + 2);
    }
    return answer_judge(&answer, key, e);
}
