//: include "flash.h"
#define TINY_CLASSES @classes@
#define TINY_NULL (-1)      /* returned for a null pointer */
#define TINY_BAD_INPUT (-2) /* returned for a row with a value that its column cannot have */

/* Values are whole numbers, in the order row, column, channel. A layer adds up windows of them. */
typedef struct {
//: for name, kind in fields
    @kind@ @name@;
//: endfor
} tiny_layer;

/* Sizes of the layers; a last one has no top, and its sums stay. */
static const tiny_layer tiny_layers[] TINY_FLASH = {
//: for layer in layers
    {@layer|join(", ")@}@"" if loop.last else ","@
//: endfor
};

/* Of each layer its weights, then scales and offsets of units. Of every eight values a byte per
   unit and digit, from the highest digit on; a bit is 1 or @low@. */
@weights@

/* A row: @names|length@ columns, @ends|comment@, each from @least@ to @most@. */
typedef struct {
    @type@ x[@names|length@];
} tiny_row;

/* Functions of their own have all registers to themselves. */
#if defined(__GNUC__)
#define TINY_APART static __attribute__((noinline, unused))
#else
#define TINY_APART static
#endif

/* Sums of four values, by the bits of those that are taken. */
TINY_APART void tiny_table(const uint8_t *x, uint16_t *t)
{
    const unsigned a = x[0], b = x[1], c = x[2], d = x[3];
//: for taken in ["0", "a", "b", "a + b", "c", "a + c", "b + c", "a + b + c"]
    t[@loop.index0@] = (uint16_t)(@taken@);
    t[@loop.index0 + 8@] = (uint16_t)(@taken@ + d);
//: endfor
}

/* Adds to each of the sums those of eight values that the bits of its weights take. */
TINY_APART void tiny_add(const uint8_t *w, const uint16_t *t, @sum@ *sum, unsigned sums)
{
    const uint16_t *next = t + 16;
#if defined(__GNUC__)
    __asm__("" : "+r"(next)); /* so that it is not added anew each time */
#endif
    do {
        const uint32_t bits = TINY_LOAD8(w++);
        *sum = (@sum@)(*sum + t[(bits << 28) >> 28] + next[bits >> 4]);
        sum++;
    } while (--sums);
}

/* Runs a layer; where the next one begins among the weights. */
static inline const uint8_t *tiny_run(
    const tiny_layer *g, const uint8_t *w, const uint8_t *x, uint8_t *y, int32_t *h)
{
    uint8_t window[@window@];
    @sum@ sum[@sums@];
    uint16_t table[32];
    unsigned row, column, i, j, k, n, u;
    TINY_NEAR(tiny_layer, g);
    for (row = 0; row < g->rows; row++) {
        for (column = 0; column < g->columns; column++) {
            const uint8_t *weight = w;
//: if grouped
            unsigned group;
            for (group = 0; group < g->groups; group++) {
//: endif
            int32_t total = 0;
            n = 0;
            for (i = 0; i < g->kernel_rows; i++) {
//: if padded
                const unsigned r = row * g->stride_rows + i - g->padding_rows;
                for (j = 0; j < g->kernel_columns; j++) {
                    const unsigned c = column * g->stride_columns + j - g->padding_columns;
                    const uint8_t *from = x + (r * g->width + c) * g->channels@groups@;
                    const int inside = r < g->height && c < g->width;
                    for (k = 0; k < g->depth; k++) {
                        total += window[n++] = inside ? from[k] : 0;
                    }
                }
//: elif grouped
                for (j = 0; j < g->kernel_columns; j++) {
                    const uint8_t *from = x + ((row * g->stride_rows + i) * g->width
                        + column * g->stride_columns + j) * g->channels@groups@;
                    for (k = 0; k < g->depth; k++) {
                        total += window[n++] = from[k];
                    }
                }
//: else
                const uint8_t *from = x
                    + ((row * g->stride_rows + i) * g->width + column * g->stride_columns) * g->depth;
                for (j = 0; j < g->run; j++) {
                    total += window[n++] = from[j];
                }
//: endif
            }
            for (k = 0; k < 8; k++) {
                window[n + k] = 0;
            }
            for (u = 0; u < g->sums; u++) {
                sum[u] = 0;
            }
            for (k = 0; k < n; k += 8) {
                const uint8_t *v = window + k;
                if (v[0] | v[1] | v[2] | v[3] | v[4] | v[5] | v[6] | v[7]) {
                    tiny_table(v, table);
                    tiny_table(v + 4, table + 16);
                    tiny_add(weight, table, sum, g->sums);
                }
                weight += g->sums;
            }
            for (u = 0, k = 0; u < g->units; u++) {
                int32_t v = 0;
                for (i = 0; i < g->digits; i++) {
                    v = 2 * v + @"2 * " if low else ""@(int32_t)sum[k++]@" - total" if low else ""@;
                }
                if (g->top) {
                    const uint8_t *scale = w + g->scales + u@groups_of_units@;
                    const int32_t offset = (int8_t)TINY_LOAD8(scale + g->levels);
                    v = (TINY_LOAD8(scale) * v + offset * ((int32_t)1 << g->fine)) >> g->shift;
                    *y++ = (uint8_t)(v < 0 ? 0 : v > g->top ? g->top : v);
                } else {
                    *h++ = v;
                }
            }
//: if grouped
            }
//: endif
        }
    }
    return w + g->size;
}
//: if pooled

/* The largest value of each window and channel, in place. */
static inline void tiny_pool(const tiny_layer *g, uint8_t *y)
{
    uint8_t *to = y;
    unsigned row, column, c, i, j;
    TINY_NEAR(tiny_layer, g);
    for (row = 0; row < g->pool_rows; row++) {
        for (column = 0; column < g->pool_columns; column++) {
            for (c = 0; c < g->pool_depth; c++) {
                uint8_t most = 0;
                for (i = 0; i < g->pool_height; i++) {
                    const uint8_t *from = y + ((row * g->pool_stride_rows + i) * g->columns
                        + column * g->pool_stride_columns) * g->pool_depth + c;
                    for (j = 0; j < g->pool_width; j++) {
                        most = *from > most ? *from : most;
                        from += g->pool_depth;
                    }
                }
                *to++ = most;
            }
        }
    }
}
//: endif

/* The outputs of the net; or a negative code. */
static inline int tiny_outputs(const tiny_row *row, int32_t *h)
{
    uint8_t even[@even@], odd[@odd@];
    const uint8_t *w = tiny_weights, *x;
    unsigned i;
    if (!row) {
        return TINY_NULL;
    }
//: if least > smallest or most < largest
    for (i = 0; i < @names|length@u; i++) {
        if (@bad@) {
            return TINY_BAD_INPUT;
        }
    }
//: endif
    x = row->x;
    for (i = 0; i < @layers|length@u; i++) {
        uint8_t *y = i % 2 ? odd : even;
        w = tiny_run(tiny_layers + i, w, x, y, h);
//: if pooled
        tiny_pool(tiny_layers + i, y);
//: endif
        x = y;
    }
    return 0;
}

/* The class of a row: from 0 on, or a negative code. */
static inline int tiny_predict(const tiny_row *row)
{
    int32_t h[@outputs@];
    const int code = tiny_outputs(row, h);
//: if outputs == 1
    return code ? code : h[0] >= @cut@;
//: else
    int c, best = 0;
    for (c = 1; c < TINY_CLASSES; c++) {
        if (h[c] > h[best]) {
            best = c;
        }
    }
    return code ? code : best;
//: endif
}

/* Probabilities in parts of 65535, by the level of a score from 0 to 256. */
@table("uint16_t", "tiny_probabilities", levels)@

/* Where the probability of a lead stands in its table: an odd margin, clipped, as a level. */
static inline unsigned tiny_level(int32_t lead)
{
    if (lead > @(clip + 1) // 2@) {
        lead = @(clip + 1) // 2@;
    }
    if (lead < -@(clip - 1) // 2@) {
        lead = -@(clip - 1) // 2@;
    }
    return (uint32_t)(2 * lead - 1 + @clip@) * 256u / @2 * clip@u;
}

/* The class, and the probability of each class in parts of 65535. */
static inline int tiny_proba(const tiny_row *row, uint16_t *proba)
{
    int32_t h[@outputs@];
//: if outputs > 1
    uint32_t total = 0, left = 65535u;
    int c, d, best = 0;
//: endif
    const int code = proba ? tiny_outputs(row, h) : TINY_NULL;
    if (code) {
        return code;
    }
//: if outputs == 1
    proba[1] = TINY_LOAD16(tiny_probabilities + tiny_level(h[0]));
    proba[0] = (uint16_t)(65535u - proba[1]);
    return proba[1] > 32767u;
//: else
    for (c = 0; c < TINY_CLASSES; c++) {
        int32_t lead = INT32_MAX;
        for (d = 0; d < TINY_CLASSES; d++) {
            const int32_t ahead = h[c] - h[d] + (c < d); /* first of equals */
            if (c != d && ahead < lead) {
                lead = ahead;
            }
        }
        proba[c] = TINY_LOAD16(tiny_probabilities + tiny_level(lead));
        total += proba[c];
        if (lead > 0) {
            best = c;
        }
    }
    for (c = 0; c < TINY_CLASSES; c++) {
        proba[c] = (uint16_t)((uint32_t)proba[c] * 65535u / (total ? total : 1u));
        left -= proba[c];
    }
    proba[best] = (uint16_t)(proba[best] + left);
    return best;
//: endif
}
