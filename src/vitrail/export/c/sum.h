//: set weights = "+1 or -1" if layer.weight_low else "1 or 0"
//: set values = "+1 or -1" if layer.value_low else "1 or 0"
/* A sum of n weights, @weights@, times values, @values@@", or 0 beyond the mask" if layer.masked else ""@; `sum` is where it begins. */
static inline tiny_int tiny_sum_@layer.name@(
//: if layer.masked
    const tiny_stored *w, const tiny_word *x, const tiny_word *mask, tiny_index n, tiny_int sum)
//: else
    const tiny_stored *w, const tiny_word *x, tiny_index n, tiny_int sum)
//: endif
{
    tiny_int ones = 0;
    tiny_index i;
    for (i = 0; i < TINY_WORDS(n); i++) {
//: if layer.masked
        const tiny_word v = (tiny_word)(TINY_WEIGHT(w, i) & mask[i]);
//: else
        const tiny_word v = TINY_WEIGHT(w, i);
//: endif
//: if layer.kind == "sign_sign"
        ones = tiny_ones((tiny_word)(v ^ x[i]), ones);
//: else
        ones = tiny_ones((tiny_word)(v & x[i]), ones);
//: endif
//: if layer.kind == "bit_sign"
        sum -= tiny_ones(v, 0);
//: endif
    }
//: if layer.kind == "sign_sign"
    return sum - 2 * ones;
//: else
    return sum + @"" if layer.kind == "bit_bit" else "2 * "@ones;
//: endif
}
