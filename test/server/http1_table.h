/* http1_table: raw requests and their outcome.
 *
 * Each row is one way to write a request wrongly or oddly (checks.md P1, P2, P4, P6, P11), with
 * the status of the first answer, how many requests reached the application, and, if we accept
 * what others may refuse, the reason. Every row is tried whole and cut at every byte.
 */
#ifndef WEIR_TEST_SERVER_HTTP1_TABLE_H
#define WEIR_TEST_SERVER_HTTP1_TABLE_H

#include "base/str.h"

struct http1_row {
    const char *name;
    int status; /* 0: closed without an answer, or waits for more */
    unsigned runs;
    struct str raw;
    const char *why; /* a lenient answer is all right */
};

#define GET "GET / HTTP/1.1\r\n"
#define POST "POST / HTTP/1.1\r\n"
#define HOST "Host: a\r\n"
#define END "\r\n"
#define CHUNKED "Transfer-Encoding: chunked\r\n"
#define NEXT "GET /second HTTP/1.1\r\nHost: a\r\n\r\n"
#define SMUGGLE "5\r\nhello\r\n0\r\n\r\n"
#define ROW(name, status, runs, raw)                                                           \
    { name, status, runs, STR_INIT(raw), 0 }
#define BAD(name, raw) ROW(name, 400, 0, raw NEXT)
#define FINE(name, raw) ROW(name, 200, 1, raw)
#define LENIENT(name, raw, why)                                                                \
    { name, 200, 1, STR_INIT(raw), why }

#define X10 "xxxxxxxxxx"
#define X100 X10 X10 X10 X10 X10 X10 X10 X10 X10 X10
#define X1000 X100 X100 X100 X100 X100 X100 X100 X100 X100 X100
#define X8000 X1000 X1000 X1000 X1000 X1000 X1000 X1000 X1000
#define F10                                                                                    \
    "a:1\r\n"                                                                                  \
    "b:1\r\n"                                                                                  \
    "c:1\r\n"                                                                                  \
    "d:1\r\n"                                                                                  \
    "e:1\r\n"                                                                                  \
    "f:1\r\n"                                                                                  \
    "g:1\r\n"                                                                                  \
    "h:1\r\n"                                                                                  \
    "i:1\r\n"                                                                                  \
    "j:1\r\n"

/* clang-format off */
static const struct http1_row http1_rows[] = {
    /* --- plain and right ------------------------------------------------------------------ */
    FINE("a request", GET HOST END),
    FINE("a body with a length", POST HOST "Content-Length: 5\r\n" END "hello"),
    FINE("an empty body", POST HOST "Content-Length: 0\r\n" END),
    FINE("a chunked body", POST HOST CHUNKED END "5\r\nhello\r\n0\r\n\r\n"),
    FINE("many chunks", POST HOST CHUNKED END "1\r\nh\r\n2\r\nel\r\n2\r\nlo\r\n0\r\n\r\n"),
    FINE("hexadecimal sizes in both cases", POST HOST CHUNKED END "a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n"),
    FINE("no body on a POST", POST HOST END),
    FINE("a query", "GET /a?b=c HTTP/1.1\r\n" HOST END),
    FINE("an empty query", "GET /a? HTTP/1.1\r\n" HOST END),
    FINE("two question marks", "GET /a?b?c HTTP/1.1\r\n" HOST END),
    FINE("the absolute form", "GET http://a/b HTTP/1.1\r\n" HOST END),
    FINE("the absolute form without a path", "GET http://a HTTP/1.1\r\n" HOST END),
    FINE("the absolute form with a port", "GET http://a:80/ HTTP/1.1\r\n" HOST END),
    FINE("the absolute form with a scheme in capitals", "GET HTTP://a/ HTTP/1.1\r\n" HOST END),
    FINE("the absolute form with https", "GET https://a/ HTTP/1.1\r\n" HOST END),
    FINE("the absolute form and another host", "GET http://b/ HTTP/1.1\r\n" HOST END),
    FINE("the asterisk form", "OPTIONS * HTTP/1.1\r\n" HOST END),
    FINE("a host with a port", GET "Host: a:8080\r\n" END),
    FINE("a host with a number", GET "Host: 127.0.0.1:8080\r\n" END),
    FINE("a host of IPv6", GET "Host: [::1]:8080\r\n" END),
    FINE("a host without a space before it", GET "Host:a\r\n" END),
    FINE("a host with spaces around it", GET "Host: \t a \t\r\n" END),
    FINE("an upper case host name", GET "HOST: a\r\n" END),
    FINE("an empty value", GET HOST "X:\r\n" END),
    FINE("a value of spaces", GET HOST "X:   \r\n" END),
    FINE("a value with a tab", GET HOST "X: a\tb\r\n" END),
    FINE("a value with bytes of UTF-8", GET HOST "X: \xc3\xa9\r\n" END),
    FINE("a value with colons", GET HOST "X: a:b:c\r\n" END),
    FINE("every mark a name may have", GET HOST "!#$%&'*+-.^_`|~9aZ: x\r\n" END),
    FINE("the same name twice", GET HOST "X: 1\r\nX: 2\r\n" END),
    FINE("PUT", "PUT / HTTP/1.1\r\n" HOST END),
    FINE("DELETE", "DELETE / HTTP/1.1\r\n" HOST END),
    FINE("PATCH", "PATCH / HTTP/1.1\r\n" HOST END),
    FINE("HEAD", "HEAD / HTTP/1.1\r\n" HOST END),
    FINE("OPTIONS", "OPTIONS / HTTP/1.1\r\n" HOST END),
    FINE("TRACE, for the application to refuse", "TRACE / HTTP/1.1\r\n" HOST END),
    FINE("HTTP/1.0 without a host", "GET / HTTP/1.0\r\n" END),
    FINE("HTTP/1.0 with a host", "GET / HTTP/1.0\r\n" HOST END),
    FINE("HTTP/1.0 that stays", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n" END),
    FINE("HTTP/1.0 with a body", "POST / HTTP/1.0\r\nContent-Length: 2\r\n" END "hi"),
    FINE("connection close", GET HOST "Connection: close\r\n" END),
    FINE("a body with a GET", GET HOST "Content-Length: 2\r\n" END "hi"),
    FINE("a trailer section", POST HOST CHUNKED END "1\r\nx\r\n0\r\nA: b\r\n\r\n"),
    FINE("a chunk extension", POST HOST CHUNKED END "1;a=b\r\nx\r\n0\r\n\r\n"),
    FINE("a quoted chunk extension", POST HOST CHUNKED END "1;a=\"b c\"\r\nx\r\n0\r\n\r\n"),
    FINE("a chunk extension without a value", POST HOST CHUNKED END "1;a\r\nx\r\n0\r\n\r\n"),
    FINE("an extension on the last chunk", POST HOST CHUNKED END "1\r\nx\r\n0;a=b\r\n\r\n"),
    FINE("TE", GET HOST "TE: trailers\r\n" END),
    FINE("a hundred fields", GET HOST F10 F10 F10 F10 F10 F10 F10 F10 F10 "a:1\r\nb:1\r\nc:1\r\nd:1\r\ne:1\r\nf:1\r\ng:1\r\nh:1\r\ni:1\r\n" END),
    FINE("a target of eight thousand bytes", "GET /" X8000 " HTTP/1.1\r\n" HOST END),
    FINE("percent escapes", "GET /%41%2f HTTP/1.1\r\n" HOST END),
    FINE("dots in the path", "GET /../a HTTP/1.1\r\n" HOST END),
    FINE("two slashes", "GET //a HTTP/1.1\r\n" HOST END),
    FINE("odd but legal marks in the target", "GET /a;b,c!$&'()*+=:@[]{}|^`\"<>\\ HTTP/1.1\r\n" HOST END),

    /* --- accepted, with a reason ------------------------------------------------------------ */
    LENIENT("an empty line before the request", "\r\n" GET HOST END, "RFC 9112 2.2 asks for it: old clients send one after a body"),
    LENIENT("Transfer-Encoding in capitals", POST HOST "TRANSFER-ENCODING: CHUNKED\r\n" END "1\r\nx\r\n0\r\n\r\n", "names of codings have no case, RFC 9112 7"),
    LENIENT("spaces before chunked", POST HOST "Transfer-Encoding: \t chunked\r\n" END "1\r\nx\r\n0\r\n\r\n", "optional white space belongs to no value, RFC 9110 5.5"),
    LENIENT("zeros before a content-length", POST HOST "Content-Length: 0005\r\n" END "hello", "the grammar is 1*DIGIT; it is read as decimal by everybody"),
    LENIENT("zeros before a chunk size", POST HOST CHUNKED END "0005\r\nhello\r\n0\r\n\r\n", "the grammar is 1*HEXDIG"),
    LENIENT("many zeros as the last chunk", POST HOST CHUNKED END "000\r\n\r\n", "last-chunk is 1*\"0\", RFC 9112 7.1"),
    LENIENT("an unknown connection option", GET HOST "Connection: whatever\r\n" END, "options that mean nothing to us are ignored, RFC 9110 7.6.1"),
    LENIENT("an upgrade to h2c", GET HOST "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n" END, "ignored and answered as HTTP/1.1, RFC 9110 7.8"),
    LENIENT("an upgrade to a web socket", GET HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n" END, "the same"),
    ROW("a content-length in the trailers", 400, 1, POST HOST CHUNKED END "1\r\nx\r\n0\r\nContent-Length: 5\r\n\r\n" NEXT),
    ROW("a token in the trailers", 400, 1, POST HOST CHUNKED END "1\r\nx\r\n0\r\nAUTHORIZATION: Bearer a\r\n\r\n" NEXT),
    ROW("a host in the trailers", 400, 1, POST HOST CHUNKED END "1\r\nx\r\n0\r\na: b\r\nhost: a\r\n\r\n" NEXT),
    ROW("a session in the trailers", 400, 1, POST HOST CHUNKED END "1\r\nx\r\n0\r\nx-session-id: a\r\n\r\n" NEXT),
    LENIENT("a value with a bare quote", GET HOST "X: \"a\r\n" END, "nobody parses X"),
    LENIENT("a field called content_length", GET HOST "Content_Length: 5\r\n" END, "another name, never translated to a dash"),
    LENIENT("Expect on HTTP/1.0", "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n" END "x", "must be ignored there, RFC 9110 10.1.1"),

    /* --- the request line -------------------------------------------------------------------- */
    BAD("two empty lines before the request", "\r\n\r\n" GET HOST END),
    BAD("a bare LF before the request", "\n" GET HOST END),
    BAD("a space before the method", " " GET HOST END),
    BAD("a bare LF after the request line", "GET / HTTP/1.1\n" HOST END),
    BAD("bare LF everywhere", "GET / HTTP/1.1\nHost: a\n\n"),
    BAD("a bare CR in the request line", "GET /\rx HTTP/1.1\r\n" HOST END),
    BAD("CR CR LF after the request line", "GET / HTTP/1.1\r\r\n" HOST END),
    BAD("two spaces after the method", "GET  / HTTP/1.1\r\n" HOST END),
    BAD("two spaces before the version", "GET /  HTTP/1.1\r\n" HOST END),
    BAD("a space behind the version", "GET / HTTP/1.1 \r\n" HOST END),
    BAD("a tab instead of a space", "GET\t/\tHTTP/1.1\r\n" HOST END),
    BAD("a space in the target", "GET /a b HTTP/1.1\r\n" HOST END),
    BAD("no target", "GET HTTP/1.1\r\n" HOST END),
    BAD("no version", "GET /\r\n" HOST END),
    BAD("only a method", "GET\r\n" HOST END),
    FINE("an unknown method", "FROB / HTTP/1.1\r\n" HOST END), /* 405 is for the path to say */
    FINE("a method in lower case", "get / HTTP/1.1\r\n" HOST END), /* 405 is for the path to say */
    BAD("a method with a colon", "GE:T / HTTP/1.1\r\n" HOST END),
    BAD("a method with a NUL", "GE\0T / HTTP/1.1\r\n" HOST END),
    FINE("a method of RTSP", "DESCRIBE / HTTP/1.1\r\n" HOST END), /* 405 is for the path to say */
    BAD("RTSP", "GET / RTSP/1.0\r\n" HOST END),
    BAD("ICE", "SOURCE / ICE/1.0\r\n" HOST END),
    BAD("a version in lower case", "GET / http/1.1\r\n" HOST END),
    BAD("a version without a dot", "GET / HTTP/11\r\n" HOST END),
    BAD("a version with two digits", "GET / HTTP/1.10\r\n" HOST END),
    BAD("a version with zeros", "GET / HTTP/01.1\r\n" HOST END),
    BAD("a version with a space", "GET / HTTP /1.1\r\n" HOST END),
    BAD("a version with a comma", "GET / HTTP/1,1\r\n" HOST END),
    BAD("a version without a name", "GET / /1.1\r\n" HOST END),
    BAD("a version of letters", "GET / HTTP/x.y\r\n" HOST END),
    BAD("a version of one digit", "GET / HTTP/1\r\n" HOST END),
    BAD("a longer name of the protocol", "GET / HTTPS/1.1\r\n" HOST END),
    ROW("HTTP/2.0 in a request line", 505, 0, "GET / HTTP/2.0\r\n" HOST END NEXT),
    ROW("HTTP/0.9 in a request line", 505, 0, "GET / HTTP/0.9\r\n" HOST END NEXT),
    ROW("HTTP/1.2", 505, 0, "GET / HTTP/1.2\r\n" HOST END NEXT),
    ROW("HTTP/3.0", 505, 0, "GET / HTTP/3.0\r\n" HOST END NEXT),
    ROW("HTTP/9.9", 505, 0, "GET / HTTP/9.9\r\n" HOST END NEXT),
    ROW("a broken preface of HTTP/2", 505, 0, "PRI * HTTP/2.0\r\n\r\nSX\r\n\r\n" NEXT),
    BAD("HTTP/0.9", "GET /\r\n"),
    BAD("a control byte in the target", "GET /\x01 HTTP/1.1\r\n" HOST END),
    BAD("a NUL in the target", "GET /\0 HTTP/1.1\r\n" HOST END),
    BAD("DEL in the target", "GET /\x7f HTTP/1.1\r\n" HOST END),
    BAD("a byte above 127 in the target", "GET /\xc3\xa9 HTTP/1.1\r\n" HOST END),
    BAD("a tab in the target", "GET /a\tb HTTP/1.1\r\n" HOST END),
    BAD("a fragment in the target", "GET /a#b HTTP/1.1\r\n" HOST END),
    BAD("a target without a slash", "GET a HTTP/1.1\r\n" HOST END),
    BAD("an asterisk with GET", "GET * HTTP/1.1\r\n" HOST END),
    BAD("an asterisk and more", "OPTIONS *x HTTP/1.1\r\n" HOST END),
    BAD("a target that begins with a backslash", "GET \\a HTTP/1.1\r\n" HOST END),
    BAD("a target that begins with a question mark", "GET ?a HTTP/1.1\r\n" HOST END),
    BAD("another scheme", "GET ftp://a/ HTTP/1.1\r\n" HOST END),
    BAD("an absolute form without a host", "GET http:///a HTTP/1.1\r\n" HOST END),
    BAD("an absolute form with a user", "GET http://u@a/ HTTP/1.1\r\n" HOST END),
    BAD("an absolute form with one slash", "GET http:/a HTTP/1.1\r\n" HOST END),
    BAD("an absolute form with a bad port", "GET http://a:x/ HTTP/1.1\r\n" HOST END),
    BAD("an absolute form with a fragment", "GET http://a/#b HTTP/1.1\r\n" HOST END),
    BAD("an absolute form without Host", "GET http://a/ HTTP/1.1\r\n" END),
    ROW("CONNECT", 501, 0, "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n" END NEXT),
    ROW("CONNECT with a path", 501, 0, "CONNECT / HTTP/1.1\r\n" HOST END NEXT),
    ROW("a target of nine thousand bytes", 414, 0, "GET /" X8000 X1000 " HTTP/1.1\r\n" HOST END NEXT),
    ROW("an endless request line", 414, 0, "GET /" X8000 X1000),
    ROW("an endless method", 414, 0, X8000 X1000),
    BAD("a TLS hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    BAD("noise", "\xff\xfe\xfd"),
    BAD("a NUL", "\0"),
    BAD("JSON", "{\"a\":1}\r\n"),
    BAD("an answer", "HTTP/1.1 200 OK\r\n\r\n"),

    /* --- Host ----------------------------------------------------------------------------------- */
    BAD("no host", GET END),
    BAD("two hosts", GET "Host: a\r\nHost: b\r\n" END),
    BAD("the same host twice", GET "Host: a\r\nHost: a\r\n" END),
    BAD("two hosts in HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n" END),
    BAD("an empty host", GET "Host:\r\n" END),
    BAD("a host of spaces", GET "Host:   \r\n" END),
    BAD("a host with a comma and another", GET "Host: a, b\r\n" END),
    BAD("a host with a space", GET "Host: a b\r\n" END),
    BAD("a host with a user", GET "Host: u@a\r\n" END),
    BAD("a host with a path", GET "Host: a/b\r\n" END),
    BAD("a host with a scheme", GET "Host: http://a\r\n" END),
    BAD("a host with a question mark", GET "Host: a?b\r\n" END),
    BAD("a host with a fragment", GET "Host: a#b\r\n" END),
    BAD("a host with a port of letters", GET "Host: a:b\r\n" END),
    BAD("a host with a negative port", GET "Host: a:-1\r\n" END),
    BAD("a host with a long port", GET "Host: a:123456\r\n" END),
    BAD("a host with two ports", GET "Host: a:1:2\r\n" END),
    BAD("a port without a host", GET "Host: :80\r\n" END),
    BAD("a host of IPv6 without an end", GET "Host: [::1\r\n" END),
    BAD("a host of IPv6 without brackets", GET "Host: ::1\r\n" END),
    BAD("a host of empty brackets", GET "Host: []\r\n" END),
    BAD("a host with bytes behind the brackets", GET "Host: [::1]x\r\n" END),
    BAD("a host with a backslash", GET "Host: a\\b\r\n" END),
    BAD("a host with UTF-8", GET "Host: \xc3\xa9\r\n" END),
    BAD("a host with a NUL", GET "Host: a\0b\r\n" END),
    BAD("a host with angle brackets", GET "Host: <a>\r\n" END),

    /* --- field lines ------------------------------------------------------------------------------ */
    BAD("a space before the colon", GET "Host : a\r\n" END),
    BAD("a tab before the colon", GET "Host\t: a\r\n" END),
    BAD("a space before the colon of another", GET HOST "X : a\r\n" END),
    BAD("a space in a name", GET HOST "X Y: a\r\n" END),
    BAD("a line without a colon", GET HOST "nothing\r\n" END),
    BAD("a line of one colon", GET HOST ": a\r\n" END),
    BAD("a folded line", GET HOST "X: a\r\n b\r\n" END),
    BAD("a line folded with a tab", GET HOST "X: a\r\n\tb\r\n" END),
    BAD("a folded first line", GET " Host: a\r\n" END),
    BAD("a fold before the end", GET HOST "X: a\r\n \r\n" END),
    BAD("a bare LF behind a field", GET "Host: a\n" END),
    BAD("a bare LF as the last line", GET HOST "\n"),
    BAD("a bare LF in a value", GET HOST "X: a\nY: b\r\n" END),
    BAD("a bare CR in a value", GET HOST "X: a\rb\r\n" END),
    BAD("a bare CR behind a field", GET HOST "X: a\rY: b\r\n" END),
    BAD("CR CR LF behind a field", GET HOST "X: a\r\r\n" END),
    BAD("a CR alone as the last line", GET HOST "\rX"),
    BAD("a NUL in a value", GET HOST "X: a\0b\r\n" END),
    BAD("a NUL in a name", GET HOST "X\0: a\r\n" END),
    BAD("a control byte in a value", GET HOST "X: a\x01\r\n" END),
    BAD("an escape in a value", GET HOST "X: \x1b[0m\r\n" END),
    BAD("a backspace in a value", GET HOST "X: \x08\r\n" END),
    BAD("a vertical tab in a value", GET HOST "X: \x0b\r\n" END),
    BAD("a form feed in a value", GET HOST "X: \x0c\r\n" END),
    BAD("DEL in a value", GET HOST "X: \x7f\r\n" END),
    BAD("DEL in a name", GET HOST "X\x7f: a\r\n" END),
    BAD("a control byte in a name", GET HOST "X\x01: a\r\n" END),
    BAD("UTF-8 in a name", GET HOST "\xc3\xa9: a\r\n" END),
    BAD("parentheses in a name", GET HOST "(X): a\r\n" END),
    BAD("a slash in a name", GET HOST "X/Y: a\r\n" END),
    BAD("a comma in a name", GET HOST "X,Y: a\r\n" END),
    BAD("a semicolon in a name", GET HOST "X;Y: a\r\n" END),
    BAD("an equals sign in a name", GET HOST "X=Y: a\r\n" END),
    BAD("an at sign in a name", GET HOST "X@Y: a\r\n" END),
    BAD("brackets in a name", GET HOST "X[1]: a\r\n" END),
    BAD("braces in a name", GET HOST "{X}: a\r\n" END),
    BAD("a quote in a name", GET HOST "\"X\": a\r\n" END),
    BAD("a backslash in a name", GET HOST "X\\Y: a\r\n" END),
    BAD("a question mark in a name", GET HOST "X?: a\r\n" END),
    BAD("angle brackets in a name", GET HOST "<X>: a\r\n" END),
    ROW("a hundred and one fields", 431, 0, GET HOST F10 F10 F10 F10 F10 F10 F10 F10 F10 F10 END NEXT),
    ROW("seventeen thousand bytes in one value", 431, 0, GET HOST "X: " X8000 X8000 X1000 "\r\n" END NEXT),
    ROW("seventeen thousand bytes in a name", 431, 0, GET HOST X8000 X8000 X1000 ": a\r\n" END NEXT),
    ROW("seventeen thousand bytes in many", 431, 0, GET HOST "X: " X8000 "\r\nY: " X8000 "\r\nZ: " X1000 "\r\n" END NEXT),
    ROW("an endless value", 431, 0, GET HOST "X: " X8000 X8000 X1000),

    /* --- lengths ------------------------------------------------------------------------------------ */
    BAD("a length and chunks", POST HOST "Content-Length: 5\r\n" CHUNKED END SMUGGLE),
    BAD("chunks and a length", POST HOST CHUNKED "Content-Length: 5\r\n" END SMUGGLE),
    BAD("two lengths that differ", POST HOST "Content-Length: 5\r\nContent-Length: 6\r\n" END "hello"),
    BAD("two lengths that agree", POST HOST "Content-Length: 5\r\nContent-Length: 5\r\n" END "hello"),
    BAD("a list of equal lengths", POST HOST "Content-Length: 5,5\r\n" END "hello"),
    BAD("a list of lengths", POST HOST "Content-Length: 5, 6\r\n" END "hello"),
    BAD("a length with a plus", POST HOST "Content-Length: +5\r\n" END "hello"),
    BAD("a length with a minus", POST HOST "Content-Length: -5\r\n" END "hello"),
    BAD("a length of minus zero", POST HOST "Content-Length: -0\r\n" END),
    BAD("a hexadecimal length", POST HOST "Content-Length: 0x5\r\n" END "hello"),
    BAD("a length with a fraction", POST HOST "Content-Length: 5.0\r\n" END "hello"),
    BAD("a length with an exponent", POST HOST "Content-Length: 5e0\r\n" END "hello"),
    BAD("a length with a space", POST HOST "Content-Length: 5 5\r\n" END "hello"),
    BAD("a length with an underscore", POST HOST "Content-Length: 1_0\r\n" END "hello"),
    BAD("a length of letters", POST HOST "Content-Length: five\r\n" END "hello"),
    BAD("an empty length", POST HOST "Content-Length:\r\n" END),
    BAD("a quoted length", POST HOST "Content-Length: \"5\"\r\n" END "hello"),
    BAD("a length with a semicolon", POST HOST "Content-Length: 5;\r\n" END "hello"),
    BAD("a length of 2^63", POST HOST "Content-Length: 9223372036854775808\r\n" END "hello"),
    BAD("a length of 2^64", POST HOST "Content-Length: 18446744073709551616\r\n" END "hello"),
    BAD("a length of 2^64 and five", POST HOST "Content-Length: 18446744073709551621\r\n" END "hello"),
    BAD("a length of thirty digits", POST HOST "Content-Length: 100000000000000000000000000005\r\n" END "hello"),
    BAD("a space before the colon of the length", POST HOST "Content-Length : 5\r\n" END "hello"),
    BAD("a folded length", POST HOST "Content-Length:\r\n 5\r\n" END "hello"),
    BAD("a length with a NUL", POST HOST "Content-Length: 5\0\r\n" END "hello"),
    BAD("a length with Arabic digits", POST HOST "Content-Length: \xd9\xa5\r\n" END "hello"),

    /* --- codings -------------------------------------------------------------------------------------- */
    BAD("xchunked", POST HOST "Transfer-Encoding: xchunked\r\n" END SMUGGLE),
    BAD("chunkedx", POST HOST "Transfer-Encoding: chunkedx\r\n" END SMUGGLE),
    BAD("chunked and a comma", POST HOST "Transfer-Encoding: chunked,\r\n" END SMUGGLE),
    BAD("a comma and chunked", POST HOST "Transfer-Encoding: ,chunked\r\n" END SMUGGLE),
    BAD("chunked twice", POST HOST "Transfer-Encoding: chunked, chunked\r\n" END SMUGGLE),
    BAD("chunked on two lines", POST HOST CHUNKED CHUNKED END SMUGGLE),
    BAD("gzip and chunked", POST HOST "Transfer-Encoding: gzip, chunked\r\n" END SMUGGLE),
    BAD("chunked and gzip", POST HOST "Transfer-Encoding: chunked, gzip\r\n" END SMUGGLE),
    BAD("gzip alone", POST HOST "Transfer-Encoding: gzip\r\n" END SMUGGLE),
    BAD("identity", POST HOST "Transfer-Encoding: identity\r\n" END SMUGGLE),
    BAD("chunked and identity", POST HOST "Transfer-Encoding: chunked, identity\r\n" END SMUGGLE),
    BAD("identity on another line", POST HOST CHUNKED "Transfer-Encoding: identity\r\n" END SMUGGLE),
    BAD("an empty coding", POST HOST "Transfer-Encoding:\r\n" END SMUGGLE),
    BAD("a quoted coding", POST HOST "Transfer-Encoding: \"chunked\"\r\n" END SMUGGLE),
    BAD("chunked with a parameter", POST HOST "Transfer-Encoding: chunked;a=b\r\n" END SMUGGLE),
    BAD("chunked with a vertical tab", POST HOST "Transfer-Encoding: \x0b" "chunked\r\n" END SMUGGLE),
    BAD("chunked with a NUL", POST HOST "Transfer-Encoding: chunked\0\r\n" END SMUGGLE),
    BAD("chunked with a bare CR", POST HOST "Transfer-Encoding: chunked\rX\r\n" END SMUGGLE),
    BAD("chunked and a space", POST HOST "Transfer-Encoding: chunked \r\n" END SMUGGLE),
    BAD("a folded coding", POST HOST "Transfer-Encoding:\r\n chunked\r\n" END SMUGGLE),
    BAD("a coding with a fold behind it", POST HOST "Transfer-Encoding: chunked\r\n x\r\n" END SMUGGLE),
    BAD("a space before the colon of the coding", POST HOST "Transfer-Encoding : chunked\r\n" END SMUGGLE),
    BAD("chunked in HTTP/1.0", "POST / HTTP/1.0\r\n" HOST CHUNKED END SMUGGLE),
    BAD("chunked and a length in HTTP/1.0", "POST / HTTP/1.0\r\n" HOST CHUNKED "Content-Length: 5\r\n" END SMUGGLE),
    BAD("chunked with a GET and a length", GET HOST CHUNKED "Content-Length: 5\r\n" END SMUGGLE),

    /* --- chunks: refused after the request has begun ------------------------------------------------ */
#define CHUNK(name, body) ROW(name, 400, 1, POST HOST CHUNKED END body NEXT)
    CHUNK("a size with 0x", "0x5\r\nhello\r\n0\r\n\r\n"),
    CHUNK("a size with a plus", "+5\r\nhello\r\n0\r\n\r\n"),
    CHUNK("a size with a minus", "-5\r\nhello\r\n0\r\n\r\n"),
    CHUNK("a size with an underscore", "0_5\r\nhello\r\n0\r\n\r\n"),
    CHUNK("a size with a space before it", " 5\r\nhello\r\n0\r\n\r\n"),
    CHUNK("a size with a space behind it", "5 \r\nhello\r\n0\r\n\r\n"),
    CHUNK("a size with a tab behind it", "5\t\r\nhello\r\n0\r\n\r\n"),
    CHUNK("no size", "\r\nhello\r\n0\r\n\r\n"),
    CHUNK("only an extension", ";a=b\r\nhello\r\n0\r\n\r\n"),
    CHUNK("a size of letters", "xyz\r\nhello\r\n0\r\n\r\n"),
    CHUNK("a size that overflows", "10000000000000005\r\nhello\r\n0\r\n\r\n"),
    CHUNK("a size of sixteen digits", "FFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n"),
    CHUNK("a size with too many zeros", "0000000000000000000000005\r\nhello\r\n0\r\n\r\n"),
    CHUNK("a bare LF behind the size", "5\nhello\r\n0\r\n\r\n"),
    CHUNK("a bare CR behind the size", "5\rhello\r\n0\r\n\r\n"),
    CHUNK("CR CR behind the size", "5\r\rhello\r\n0\r\n\r\n"),
    CHUNK("a bare LF in an extension", "5;a\nhello\r\n0\r\n\r\n"),
    CHUNK("a bare CR in an extension", "5;a\r0\r\nhello\r\n0\r\n\r\n"),
    CHUNK("a bare LF in a quoted extension", "5;a=\"\n\"\r\nhello\r\n0\r\n\r\n"),
    CHUNK("a NUL in an extension", "5;a\0\r\nhello\r\n0\r\n\r\n"),
    CHUNK("an empty extension", "5;\r\nhello\r\n0\r\n\r\n"),
    CHUNK("an endless extension", "5;" X100 X100 X100 "\r\nhello\r\n0\r\n\r\n"),
    CHUNK("a bare LF behind the data", "5\r\nhello\n0\r\n\r\n"),
    CHUNK("nothing behind the data", "5\r\nhello0\r\n\r\n"),
    CHUNK("a bare CR behind the data", "5\r\nhello\r0\r\n\r\n"),
    CHUNK("more data than announced", "5\r\nhelloworld\r\n0\r\n\r\n"),
    CHUNK("a bare LF behind the last chunk", "5\r\nhello\r\n0\n\r\n"),
    CHUNK("a bare LF at the very end", "5\r\nhello\r\n0\r\n\n"),
    CHUNK("a trailer without a colon", "5\r\nhello\r\n0\r\nx\r\n\r\n"),
    CHUNK("a trailer with a space before the colon", "5\r\nhello\r\n0\r\nx : y\r\n\r\n"),
    CHUNK("a folded trailer", "5\r\nhello\r\n0\r\nx: y\r\n z\r\n\r\n"),
    CHUNK("a trailer with a bare LF", "5\r\nhello\r\n0\r\nx: y\n\r\n"),
    CHUNK("a trailer with a NUL", "5\r\nhello\r\n0\r\nx: \0\r\n\r\n"),
    CHUNK("a trailer with a control byte", "5\r\nhello\r\n0\r\nx: \x01\r\n\r\n"),
    ROW("a hundred and one trailers", 431, 1, POST HOST CHUNKED END "0\r\n" F10 F10 F10 F10 F10 F10 F10 F10 F10 F10 "\r\n" NEXT),
    ROW("an endless trailer", 431, 1, POST HOST CHUNKED END "0\r\nx: " X8000 X8000 X1000),
#undef CHUNK

    /* --- wishes ------------------------------------------------------------------------------------------ */
    ROW("another expectation", 417, 0, POST HOST "Expect: the unexpected\r\nContent-Length: 1\r\n" END "x" NEXT),
    ROW("an empty expectation", 417, 0, POST HOST "Expect:\r\nContent-Length: 1\r\n" END "x" NEXT),
    FINE("an expectation with the body already there", POST HOST "Expect: 100-continue\r\nContent-Length: 1\r\n" END "x"),
    FINE("an expectation without a body", GET HOST "Expect: 100-continue\r\n" END),

    /* --- one after the other ------------------------------------------------------------------------------ */
    ROW("two requests", 200, 2, GET HOST END NEXT),
    ROW("three requests", 200, 3, GET HOST END NEXT NEXT),
    ROW("a body and a request", 200, 2, POST HOST "Content-Length: 5\r\n" END "hello" NEXT),
    ROW("chunks and a request", 200, 2, POST HOST CHUNKED END SMUGGLE NEXT),
    ROW("chunks with trailers and a request", 200, 2, POST HOST CHUNKED END "5\r\nhello\r\n0\r\na: b\r\n\r\n" NEXT),
    ROW("an empty line between two", 200, 2, GET HOST END "\r\n" NEXT),
    ROW("good, bad, good", 200, 1, GET HOST END GET END NEXT),
    ROW("good, noise", 200, 1, GET HOST END "\x01\x02"),
    ROW("a second request behind close", 200, 1, GET HOST "Connection: close\r\n" END NEXT),
    ROW("a second request behind HTTP/1.0", 200, 1, "GET / HTTP/1.0\r\n" END NEXT),
    ROW("a second request behind HTTP/1.0 that stays", 200, 2, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n" END NEXT),
    ROW("a second request behind an upgrade", 200, 2, GET HOST "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n" END NEXT),
    ROW("an upgrade with a preface behind it", 200, 1, GET HOST "Connection: Upgrade\r\nUpgrade: h2c\r\n" END "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ROW("a second request inside a body stays a body", 200, 1, POST HOST "Content-Length: 40\r\n" END NEXT),

    /* --- not over yet -------------------------------------------------------------------------------------- */
    ROW("half a request line", 0, 0, "GET / HT"),
    ROW("no empty line", 0, 0, GET HOST),
    ROW("half an empty line", 0, 0, GET HOST "\r"),
    ROW("the beginning of the preface of HTTP/2", 0, 0, "PRI * HTTP/2.0\r\n\r\nSM"),
};
/* clang-format on */

#endif
