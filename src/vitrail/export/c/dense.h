//: if last
/* The sums of units that each read all n values. */
static inline void tiny_dense_@kind@_last(
    const tiny_stored *w, const tiny_word *x, tiny_int *h, tiny_index units, tiny_index n)
//: else
/* Which sums of units are positive that each read all n values. */
static inline void tiny_dense_@kind@(
    const tiny_stored *w, const tiny_word *x, tiny_word *y, tiny_index units, tiny_index n)
//: end
{
    const tiny_int start = @start@;
    tiny_index u;
//: if not last
    tiny_clear(y, units);
//: end
    for (u = 0; u < units; u++) {
        const tiny_int sum = tiny_sum_@kind@(w, x, n, start);
//: if last
        h[u] = sum;
//: else
        if (sum > 0) {
            tiny_set(y, u);
        }
//: end
        w += TINY_STRIDE(n);
    }
}
