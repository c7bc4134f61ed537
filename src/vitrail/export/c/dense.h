//: if "last" in flags
/* The sums of units that each read all n values. */
static inline void tiny_dense_@kind@_last(
    const tiny_stored *w, const tiny_word *x, tiny_int *h, tiny_index units, tiny_index n)
//: else
/* Which sums of units are positive that each read all n values. */
static inline void tiny_dense_@kind@(
    const tiny_stored *w, const tiny_word *x, tiny_word *y, tiny_index units, tiny_index n)
//: endif
{
    const tiny_int start = @start@;
    tiny_index u;
//: if "last" not in flags
    tiny_clear(y, units);
//: endif
    for (u = 0; u < units; u++) {
        const tiny_int sum = tiny_sum_@kind@(w, x, n, start);
//: if "last" in flags
        h[u] = sum;
//: else
        if (sum > 0) {
            tiny_set(y, u);
        }
//: endif
        w += TINY_STRIDE(n);
    }
}
