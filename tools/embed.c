/* embed: a file as a C string, for the build.
 *
 *     embed NAME INPUT OUTPUT.c HEADER
 *
 * writes `const struct str NAME`, which HEADER declares, holding the bytes of INPUT.
 */
#include <stdio.h>
#include <stdlib.h>

static void fail(const char *what, const char *path) {
    fprintf(stderr, "embed: %s ", what);
    perror(path);
    exit(1);
}

/* Sixteen numbers a line: what the compiler reads fast and any diff tool can show. */
static size_t write_bytes(FILE *in, FILE *out) {
    size_t count = 0;
    for (int c; (c = fgetc(in)) != EOF; count++)
        fprintf(out, "%s%d,", count % 16 == 0 ? "\n    " : " ", c);
    return count;
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: embed NAME INPUT OUTPUT.c HEADER\n");
        return 2;
    }
    const char *name = argv[1], *input = argv[2], *output = argv[3], *header = argv[4];
    FILE *in = fopen(input, "rb");
    if (!in) fail("read", input);
    FILE *out = fopen(output, "wb");
    if (!out) fail("write", output);

    fprintf(out, "/* Written by the build from a file of the tree; edit that one. */\n");
    fprintf(out, "#include \"%s\"\n\nstatic const unsigned char bytes[] = {", header);
    size_t count = write_bytes(in, out);
    fprintf(out, "%s0};\n\n", count % 16 == 0 ? "\n    " : " "); /* never an empty array */
    fprintf(out, "const struct str %s = {(const char *)bytes, %zu};\n", name, count);

    if (ferror(in)) fail("read", input);
    if (fclose(out) != 0) fail("write", output);
    fclose(in);
    return 0;
}
