#include "text/charset.h"

#include "base/utf8.h"

#include <errno.h>
#include <iconv.h>

#define META_BYTES 1024
#define STEP_BYTES 4096

/* Labels of web pages and the names that libc knows. */
static const struct {
    struct str label;
    const char *name; /* NULL: UTF-8 */
} labels[] = {
    /* clang-format off */
    {STR_INIT("utf-8"), NULL},                  {STR_INIT("utf8"), NULL},
    {STR_INIT("windows-1252"), "WINDOWS-1252"}, {STR_INIT("cp1252"), "WINDOWS-1252"},
    {STR_INIT("iso-8859-1"), "WINDOWS-1252"},   {STR_INIT("iso8859-1"), "WINDOWS-1252"},
    {STR_INIT("latin1"), "WINDOWS-1252"},       {STR_INIT("latin-1"), "WINDOWS-1252"},
    {STR_INIT("us-ascii"), "WINDOWS-1252"},     {STR_INIT("ascii"), "WINDOWS-1252"},
    {STR_INIT("windows-1250"), "WINDOWS-1250"}, {STR_INIT("windows-1251"), "WINDOWS-1251"},
    {STR_INIT("iso-8859-2"), "ISO-8859-2"},     {STR_INIT("iso-8859-15"), "ISO-8859-15"},
    {STR_INIT("koi8-r"), "KOI8-R"},             {STR_INIT("shift_jis"), "SHIFT_JIS"},
    {STR_INIT("euc-jp"), "EUC-JP"},             {STR_INIT("euc-kr"), "EUC-KR"},
    {STR_INIT("gb2312"), "GB18030"},            {STR_INIT("gbk"), "GB18030"},
    {STR_INIT("gb18030"), "GB18030"},           {STR_INIT("big5"), "BIG5"},
    {STR_INIT("utf-16le"), "UTF-16LE"},         {STR_INIT("utf-16be"), "UTF-16BE"},
    /* clang-format on */
};

static const struct {
    struct str bytes;
    const char *name;
} marks[] = {
    {STR_INIT("\xEF\xBB\xBF"), NULL},
    {STR_INIT("\xFF\xFE"), "UTF-16LE"},
    {STR_INIT("\xFE\xFF"), "UTF-16BE"},
};

/* ---- Names ---- */

/* The value after "charset=", in quotes or up to the first byte that cannot be in a name. */
static struct str name_after(struct str text) {
    static const char ends[] = "\"'; \t\r\n/>";
    struct str rest = str_trim(text);
    if (!str_starts(rest, STR("="))) return STR_EMPTY;
    rest = str_trim(str_skip(rest, 1));
    if (str_starts(rest, STR("\"")) || str_starts(rest, STR("'"))) rest = str_skip(rest, 1);
    size_t len = 0;
    while (len < rest.len && !(rest.at[len] && strchr(ends, rest.at[len]))) len++;
    return str_head(rest, len);
}

struct str charset_of_type(struct str content_type) {
    size_t at = str_find_nocase(content_type, STR("charset"));
    return name_after(str_skip(content_type, at + strlen("charset")));
}

struct str charset_of_page(struct str page) {
    struct str rest = str_head(page, META_BYTES);
    for (;;) {
        rest = str_skip(rest, str_find_nocase(rest, STR("<meta")));
        if (rest.len == 0) return STR_EMPTY;
        struct str tag = str_head(rest, str_find_byte(rest, '>'));
        struct str name = charset_of_type(tag);
        if (name.len) return name;
        rest = str_skip(rest, 1);
    }
}

/* ---- Converting ---- */

static const char *iconv_name(struct str label) {
    for (size_t i = 0; i < ARRAY_LEN(labels); i++) {
        if (str_equal_nocase(label, labels[i].label)) return labels[i].name;
    }
    return NULL;
}

/* Convert some input; false at bytes that are invalid or incomplete. */
static bool convert_some(iconv_t converter, char **in, size_t *in_left, struct buf *out) {
    char room[STEP_BYTES];
    char *to = room;
    size_t to_left = sizeof room;
    size_t made = iconv(converter, in, in_left, &to, &to_left);
    bool stuck = made == (size_t)-1 && errno != E2BIG;
    buf_append(out, str_of(room, sizeof room - to_left));
    return !stuck;
}

static void convert(iconv_t converter, struct str bytes, struct buf *out) {
    char *in = (char *)bytes.at; /* iconv does not write to it */
    size_t left = bytes.len;
    while (left > 0 && buf_ok(out)) {
        if (convert_some(converter, &in, &left, out)) continue;
        utf8_append(out, 0xFFFD);
        (void)iconv(converter, NULL, NULL, NULL, NULL);
        in++;
        left--;
    }
}

/* gcc's analyzer does not know that (iconv_t)-1 is not a descriptor and need not be closed. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif

/* Without a name, or when libc lacks its table, the text is treated as UTF-8. */
void charset_append(struct buf *out, struct str name, struct str bytes) {
    const char *from = iconv_name(name);
    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        if (!str_starts(bytes, marks[i].bytes)) continue;
        from = marks[i].name;
        bytes = str_skip(bytes, marks[i].bytes.len);
        break;
    }
    iconv_t converter = from ? iconv_open("UTF-8", from) : (iconv_t)-1;
    if (converter == (iconv_t)-1) {
        utf8_append_repaired(out, bytes);
        return;
    }
    convert(converter, bytes, out);
    iconv_close(converter);
}
