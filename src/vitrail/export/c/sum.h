//: if sign_sign
/* A sum of n weights, +1 or -1, times values, +1 or -1@beyond@; `sum` is where it begins. */
//: end
//: if sign_bit
/* A sum of n weights, +1 or -1, times values, 1 or 0; `sum` is where it begins. */
//: end
//: if bit_sign
/* A sum of n weights, 1 or 0, times values, +1 or -1@beyond@; `sum` is where it begins. */
//: end
//: if bit_bit
/* A sum of n weights, 1 or 0, times values, 1 or 0; `sum` is where it begins. */
//: end
static inline tiny_int tiny_sum_@kind@(
//: if masked
    const tiny_stored *w, const tiny_word *x, const tiny_word *mask, tiny_index n, tiny_int sum)
//: else
    const tiny_stored *w, const tiny_word *x, tiny_index n, tiny_int sum)
//: end
{
    tiny_int ones = 0;
    tiny_index i;
    for (i = 0; i < TINY_WORDS(n); i++) {
//: if masked
        const tiny_word v = (tiny_word)(TINY_WEIGHT(w, i) & mask[i]);
//: else
        const tiny_word v = TINY_WEIGHT(w, i);
//: end
//: if sign_sign
        ones = tiny_ones((tiny_word)(v ^ x[i]), ones);
//: else
        ones = tiny_ones((tiny_word)(v & x[i]), ones);
//: end
//: if bit_sign
        sum -= tiny_ones(v, 0);
//: end
    }
//: if sign_sign
    return sum - 2 * ones;
//: end
//: if sign_bit
    return sum + 2 * ones;
//: end
//: if bit_sign
    return sum + 2 * ones;
//: end
//: if bit_bit
    return sum + ones;
//: end
}
