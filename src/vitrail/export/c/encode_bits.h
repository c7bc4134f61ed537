/* A row: @about@. */
typedef struct {
    @type@ x[TINY_BITS];
} tiny_row;

/* The bits of a row, 1 above @middle@; 0, or a negative code. */
static inline int tiny_encode(const tiny_row *row, tiny_bits *bits)
{
    tiny_index i;
    if (!row || !bits) {
        return TINY_NULL;
    }
    tiny_clear(bits->word, TINY_INPUTS);
    for (i = 0; i < TINY_BITS; i++) {
//: if low
        if (row->x[i] < @low@) {
            return TINY_BAD_INPUT;
        }
//: end
//: if high
        if (row->x[i] > @high@) {
            return TINY_BAD_INPUT;
        }
//: end
        if (row->x[i] > @middle@) {
            tiny_set(bits->word, i);
        }
    }
//: if bias
    for (; i < TINY_INPUTS; i++) {
        tiny_set(bits->word, i); /* constant inputs */
    }
//: end
    return 0;
}
