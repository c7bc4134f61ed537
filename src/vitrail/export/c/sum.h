//: if "sign_sign" in flags
/* A sum of n weights, +1 or -1, times values, +1 or -1@beyond@; `sum` is where it begins. */
//: endif
//: if "sign_bit" in flags
/* A sum of n weights, +1 or -1, times values, 1 or 0; `sum` is where it begins. */
//: endif
//: if "bit_sign" in flags
/* A sum of n weights, 1 or 0, times values, +1 or -1@beyond@; `sum` is where it begins. */
//: endif
//: if "bit_bit" in flags
/* A sum of n weights, 1 or 0, times values, 1 or 0; `sum` is where it begins. */
//: endif
static inline tiny_int tiny_sum_@kind@(
//: if "masked" in flags
    const tiny_stored *w, const tiny_word *x, const tiny_word *mask, tiny_index n, tiny_int sum)
//: else
    const tiny_stored *w, const tiny_word *x, tiny_index n, tiny_int sum)
//: endif
{
    tiny_int ones = 0;
    tiny_index i;
    for (i = 0; i < TINY_WORDS(n); i++) {
//: if "masked" in flags
        const tiny_word v = (tiny_word)(TINY_WEIGHT(w, i) & mask[i]);
//: else
        const tiny_word v = TINY_WEIGHT(w, i);
//: endif
//: if "sign_sign" in flags
        ones = tiny_ones((tiny_word)(v ^ x[i]), ones);
//: else
        ones = tiny_ones((tiny_word)(v & x[i]), ones);
//: endif
//: if "bit_sign" in flags
        sum -= tiny_ones(v, 0);
//: endif
    }
//: if "sign_sign" in flags
    return sum - 2 * ones;
//: endif
//: if "sign_bit" in flags
    return sum + 2 * ones;
//: endif
//: if "bit_sign" in flags
    return sum + 2 * ones;
//: endif
//: if "bit_bit" in flags
    return sum + ones;
//: endif
}
