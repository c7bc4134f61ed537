/* A row: @names|length@ columns, @ends|comment@, each from @low@ to @high@. */
typedef struct {
    @type@ x[@names|length@];
} tiny_row;

//: if cuts|length > 1
/* Where columns are cut. */
@table(type, "tiny_cuts", cuts|map("int32_literal"))@

/* The bits of a row, 1 above a cut, all of the first cut before those of the next; 0, or a
   negative code. */
//: else
/* The bits of a row, 1 above @cuts[0]@; 0, or a negative code. */
//: endif
static inline int tiny_encode(const tiny_row *row, tiny_bits *bits)
{
    tiny_index i;
    if (!row || !bits) {
        return TINY_NULL;
    }
    tiny_clear(bits->word, TINY_INPUTS);
//: include "constants.h"
    for (i = 0; i < @names|length@u; i++) {
//: if cuts|length > 1
        tiny_index cut, bit = i;
//: endif
//: if low > smallest
        if (row->x[i] < @low@) {
            return TINY_BAD_INPUT;
        }
//: endif
//: if high < largest
        if (row->x[i] > @high@) {
            return TINY_BAD_INPUT;
        }
//: endif
//: if cuts|length > 1
        for (cut = 0; cut < @cuts|length@u; cut++) {
            if (row->x[i] > @read(type, "tiny_cuts + cut")@) {
                tiny_set(bits->word, bit);
            }
            bit += @names|length@u;
        }
//: else
        if (row->x[i] > @cuts[0]@) {
            tiny_set(bits->word, i);
        }
//: endif
    }
    return 0;
}
