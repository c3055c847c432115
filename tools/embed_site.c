/* embed_site: the files of a web page as one C table, for the build.
 *
 *     embed_site OUTPUT.c HEADER FILE...
 *
 * writes `const struct console_file console_files[]`, which HEADER declares: each file by its
 * name, with its content type by the name's ending, its length, a tag of its content, and its
 * content as gzip.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define FILE_MAX_BYTES (1 << 20)
#define GZIP_WINDOW_BITS (15 + 16) /* zlib: 16 more ask for gzip's header */
#define GZIP_MEMORY_LEVEL 9

static const struct {
    const char *ending, *type;
} types[] = {
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".svg", "image/svg+xml"},
};

static void fail(const char *what, const char *path) {
    fprintf(stderr, "embed_site: %s ", what);
    perror(path);
    exit(1);
}

static const char *type_of(const char *path) {
    size_t len = strlen(path);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        size_t ending = strlen(types[i].ending);
        if (len > ending && strcmp(path + len - ending, types[i].ending) == 0)
            return types[i].type;
    }
    fprintf(stderr, "embed_site: there is no content type for %s\n", path);
    exit(1);
}

static size_t read_file(const char *path, unsigned char *ret) {
    FILE *in = fopen(path, "rb");
    if (!in) fail("read", path);
    size_t len = fread(ret, 1, FILE_MAX_BYTES, in);
    if (ferror(in) || len == FILE_MAX_BYTES) fail("read (too large?)", path);
    fclose(in);
    return len;
}

/* FNV-1a: two files of one name with one tag would have to be made on purpose. */
static uint64_t tag_of(const unsigned char *bytes, size_t len) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < len; i++) hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    return hash;
}

static size_t compress_file(const unsigned char *bytes, size_t len, unsigned char *ret) {
    z_stream zip = {.next_in = (unsigned char *)(uintptr_t)bytes,
                    .avail_in = (unsigned)len,
                    .next_out = ret,
                    .avail_out = FILE_MAX_BYTES};
    if (deflateInit2(&zip, Z_BEST_COMPRESSION, Z_DEFLATED, GZIP_WINDOW_BITS, GZIP_MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK ||
        deflate(&zip, Z_FINISH) != Z_STREAM_END) {
        fprintf(stderr, "embed_site: zlib fails\n");
        exit(1);
    }
    size_t written = zip.total_out;
    deflateEnd(&zip);
    return written;
}

static void write_bytes(FILE *out, int index, const unsigned char *bytes, size_t len) {
    fprintf(out, "static const unsigned char bytes_%d[] = {", index);
    for (size_t i = 0; i < len; i++)
        fprintf(out, "%s%d,", i % 16 == 0 ? "\n    " : " ", bytes[i]);
    fprintf(out, "\n};\n\n");
}

static void write_row(FILE *out, int index, const char *path, size_t len, size_t zipped,
                      uint64_t tag) {
    const char *slash = strrchr(path, '/');
    fprintf(out,
            "    {STR_INIT(\"%s\"), STR_INIT(\"%s\"), STR_INIT(\"\\\"%016" PRIx64
            "\\\"\"), {(const char *)bytes_%d, %zu}, %zu},\n",
            slash ? slash + 1 : path, type_of(path), tag, index, zipped, len);
}

int main(int argc, char **argv) {
    static unsigned char bytes[FILE_MAX_BYTES], zipped[FILE_MAX_BYTES];
    if (argc < 4) {
        fprintf(stderr, "usage: embed_site OUTPUT.c HEADER FILE...\n");
        return 2;
    }
    FILE *out = fopen(argv[1], "wb");
    if (!out) fail("write", argv[1]);
    fprintf(out, "/* Written by the build from files of the tree; edit those. */\n");
    fprintf(out, "#include \"%s\"\n\n", argv[2]);
    for (int i = 3; i < argc; i++)
        write_bytes(out, i, zipped, compress_file(bytes, read_file(argv[i], bytes), zipped));
    fprintf(out, "const struct console_file console_files[] = {\n");
    for (int i = 3; i < argc; i++) {
        size_t len = read_file(argv[i], bytes);
        write_row(out, i, argv[i], len, compress_file(bytes, len, zipped), tag_of(bytes, len));
    }
    fprintf(out, "};\n\nconst size_t console_file_count = %d;\n", argc - 3);
    if (ferror(out) || fclose(out) != 0) fail("write", argv[1]);
    return 0;
}
