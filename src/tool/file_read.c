/* file_read: the tool that reads a file of the workspace.
 *
 * {"key":"notes/plan.md"} gives {"key","content","content_type","encoding","size_bytes"}. Text
 * is returned unchanged, other content as base64. Content that is too long for a result is cut
 * between characters and `truncated` is set; size_bytes is always the size of the file.
 *
 * Source   crawbl.md 2.8
 */
#include "base/utf8.h"
#include "tool/file_tool.h"
#include "tool/local.h"
#include "wire/base64.h"

/* ---- What kind of content ---- */

/* clang-format off */
static const struct content {
    const char *extension;
    struct str type;
    bool text; /* shown as text if it is valid UTF-8 */
} contents[] = {
    {"txt",   STR_INIT("text/plain; charset=utf-8"),      true},
    {"log",   STR_INIT("text/plain; charset=utf-8"),      true},
    {"md",    STR_INIT("text/markdown; charset=utf-8"),   true},
    {"html",  STR_INIT("text/html; charset=utf-8"),       true},
    {"htm",   STR_INIT("text/html; charset=utf-8"),       true},
    {"css",   STR_INIT("text/css; charset=utf-8"),        true},
    {"csv",   STR_INIT("text/csv; charset=utf-8"),        true},
    {"tsv",   STR_INIT("text/tab-separated-values"),      true},
    {"ics",   STR_INIT("text/calendar"),                  true},
    {"json",  STR_INIT("application/json"),               true},
    {"jsonl", STR_INIT("application/x-ndjson"),           true},
    {"ndjson",STR_INIT("application/x-ndjson"),           true},
    {"xml",   STR_INIT("application/xml"),                true},
    {"yaml",  STR_INIT("application/yaml"),               true},
    {"yml",   STR_INIT("application/yaml"),               true},
    {"js",    STR_INIT("text/javascript; charset=utf-8"), true},
    {"mjs",   STR_INIT("text/javascript; charset=utf-8"), true},
    {"svg",   STR_INIT("image/svg+xml"),                  true},
    {"png",   STR_INIT("image/png"),                      false},
    {"jpg",   STR_INIT("image/jpeg"),                     false},
    {"jpeg",  STR_INIT("image/jpeg"),                     false},
    {"gif",   STR_INIT("image/gif"),                      false},
    {"webp",  STR_INIT("image/webp"),                     false},
    {"mp3",   STR_INIT("audio/mpeg"),                     false},
    {"wav",   STR_INIT("audio/wav"),                      false},
    {"mp4",   STR_INIT("video/mp4"),                      false},
    {"pdf",   STR_INIT("application/pdf"),                false},
    {"zip",   STR_INIT("application/zip"),                false},
    {"gz",    STR_INIT("application/gzip"),               false},
};
/* clang-format on */

/* For names without a known extension; the bytes then decide. */
static const struct content unknown_text = {"", STR_INIT("text/plain; charset=utf-8"), true};
static const struct content unknown_bytes = {"", STR_INIT("application/octet-stream"), false};

static const struct content *content_of(struct str path, bool is_text) {
    for (size_t i = 0; i < ARRAY_LEN(contents); i++) {
        struct str extension = str_from(contents[i].extension);
        if (path.len <= extension.len) continue;
        struct str tail = str_skip(path, path.len - extension.len - 1);
        if (tail.at[0] == '.' && str_equal_nocase(str_skip(tail, 1), extension))
            return &contents[i];
    }
    return is_text ? &unknown_text : &unknown_bytes;
}

/* ---- The result ---- */

/* Whether the start of a file is text. *ret is the part that ends on a character. */
static bool file_read_text_of(struct str bytes, bool is_whole, struct str *ret) {
    size_t pending = is_whole ? 0 : utf8_pending(bytes);
    *ret = str_head(bytes, bytes.len - pending);
    return utf8_valid(*ret) && str_find_byte(*ret, '\0') == ret->len;
}

/* Encode as much of `bytes` as fits into a JSON string of `room` bytes, quotes included. */
static bool as_base64(struct str bytes, size_t room, struct arena *arena, struct str *ret) {
    size_t most = room > 2 ? (room - 2) / 4 * 3 : 0;
    struct buf text;
    buf_init(&text, room);
    bool kept = base64_encode(&text, str_head(bytes, most), BASE64_STANDARD, BASE64_PADDED) &&
                arena_str(arena, buf_str(&text), ret);
    buf_done(&text);
    return kept;
}

static void file_read_write_result(const struct file_request *request, struct buf *out,
                                   const struct content *content, struct str encoding,
                                   struct str text, uint64_t size, bool cut) {
    struct json_writer writer = json_writer(out);
    json_open_object(&writer);
    json_member_str(&writer, "key", request->key);
    json_member_str(&writer, "content", text);
    json_member_str(&writer, "content_type", content->type);
    json_member_str(&writer, "encoding", encoding);
    json_member_u64(&writer, "size_bytes", size);
    if (cut) json_member_bool(&writer, "truncated", true);
    json_close(&writer);
}

/* The type that a file was written with counts, if the place knows it. */
static struct content kept_content(struct str type) {
    static const struct str texts[] = {STR_INIT("json"), STR_INIT("xml"), STR_INIT("yaml"),
                                       STR_INIT("javascript")};
    bool text = str_starts(type, STR("text/"));
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        text = text || str_find_nocase(type, texts[i]) < type.len;
    return (struct content){"", type, text};
}

/* What storage says of an object that was written without a type. */
static bool says_nothing(struct str type) {
    return type.len == 0 || str_equal_nocase(type, STR("application/octet-stream")) ||
           str_equal_nocase(type, STR("binary/octet-stream"));
}

static bool file_read_show(const struct file_request *request, const struct file_content *found,
                           struct buf *out, struct err *e) {
    struct str text, shown, bytes = found->bytes;
    uint64_t size = found->size;
    bool whole = bytes.len == size;
    bool is_text = file_read_text_of(bytes, whole, &text);
    struct content kept = kept_content(found->type);
    const struct content *content =
        says_nothing(found->type) ? content_of(request->path, is_text) : &kept;
    is_text = is_text && content->text;
    struct str encoding = is_text ? STR("text") : STR("base64");

    /* Write everything but the content, to know how much room is left for it. */
    struct buf frame;
    buf_init(&frame, out->max_bytes);
    file_read_write_result(request, &frame, content, encoding, STR_EMPTY, size, true);
    size_t room = buf_ok(&frame) ? out->max_bytes - frame.len + 2 : 0;
    buf_done(&frame);
    if (room < 2) return err_set(e, ERR_INVALID_ARGUMENT, "the key is too long");

    if (is_text) {
        shown = local_fit(text, room);
    } else if (!as_base64(bytes, room, request->arena, &shown)) {
        return err_set(e, ERR_TOO_LARGE, "the result is too large");
    }
    uint64_t shown_bytes = is_text ? shown.len : base64_decoded_len(shown.len);
    if (!is_text)
        shown_bytes -= str_ends(shown, STR("==")) ? 2 : str_ends(shown, STR("=")) ? 1 : 0;
    file_read_write_result(request, out, content, encoding, shown, size, shown_bytes < size);
    return true;
}

const struct file_tool_kind file_read_tool = {
    .name = STR_INIT("file_read"),
    .description = STR_INIT(
        "Read a file of this workspace by its key, such as \"notes/plan.md\". Text comes as it "
        "is, other content as base64. Long files are cut; size_bytes tells the whole size."),
    .parameters = STR_INIT(
        "{\"type\":\"object\",\"properties\":{\"key\":{\"type\":\"string\",\"description\":"
        "\"Which file, by its path in the workspace.\"}," LOCAL_DESCRIPTION
        "},\"required\":[\"key\"],\"additionalProperties\":false}"),
    .show = file_read_show,
};
