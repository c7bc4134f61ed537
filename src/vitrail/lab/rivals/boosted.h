//: if nodes
typedef struct { int16_t value; uint8_t feature, right; } node; /* left is the next */
static const node nodes[] = {@nodes|join(", ")@};
static const uint16_t roots[] = {@roots|numbers@};
static void add(const tiny_row *row, int32_t *sum)
{
    int i, c = 0;
    for (i = 0; i < @roots|length@; i++) {
        const node *at = nodes + roots[i];
        while (at->feature != 255) {
            at += @left@ ? 1 : at->right;
        }
        sum[c] += at->value;
        c = c + 1 == @bias|length@ ? 0 : c + 1;
    }
}
//: else
static void add(const tiny_row *row, int32_t *sum)
{
@conditions|join("\n")@
}
//: endif

static int best(const tiny_row *row)
{
    static const int32_t bias[] = {@bias|numbers@};
    int32_t sum[@bias|length@];
    int c, most = 0;
    for (c = 0; c < @bias|length@; c++) sum[c] = bias[c];
    add(row, sum);
    if (@bias|length@ == 1) return sum[0] > 0;
    for (c = 1; c < @bias|length@; c++) if (sum[c] > sum[most]) most = c;
    return most;
}
