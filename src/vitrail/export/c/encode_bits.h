/* A row: @about@. */
typedef struct {
    @type@ x[@columns@];
} tiny_row;

//: if "several" in flags
/* Where columns are cut. */
@cuts@

/* The bits of a row, 1 above a cut, all of the first cut before those of the next; 0, or a
   negative code. */
//: else
/* The bits of a row, 1 above @middle@; 0, or a negative code. */
//: endif
static inline int tiny_encode(const tiny_row *row, tiny_bits *bits)
{
    tiny_index i;
    if (!row || !bits) {
        return TINY_NULL;
    }
    tiny_clear(bits->word, TINY_INPUTS);
//: if "bias" in flags
@constants@
//: endif
    for (i = 0; i < @columns@u; i++) {
//: if "several" in flags
        tiny_index cut, bit = i;
//: endif
//: if "low" in flags
        if (row->x[i] < @low@) {
            return TINY_BAD_INPUT;
        }
//: endif
//: if "high" in flags
        if (row->x[i] > @high@) {
            return TINY_BAD_INPUT;
        }
//: endif
//: if "several" in flags
        for (cut = 0; cut < @several@u; cut++) {
            if (row->x[i] > @load@(tiny_cuts + cut)) {
                tiny_set(bits->word, bit);
            }
            bit += @columns@u;
        }
//: else
        if (row->x[i] > @middle@) {
            tiny_set(bits->word, i);
        }
//: endif
    }
    return 0;
}
