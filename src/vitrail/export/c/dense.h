//: if last
/* The sums of units that each read all n values. */
static inline void tiny_dense_@layer.name@_last(
    const tiny_stored *w, const tiny_word *x, tiny_int *h, tiny_index units, tiny_index n)
//: else
/* Which sums of units are positive that each read all n values. */
static inline void tiny_dense_@layer.name@(
    const tiny_stored *w, const tiny_word *x, tiny_word *y, tiny_index units, tiny_index n)
//: endif
{
    const tiny_int start = @sum_start(layer, "x", "n")@;
    tiny_index u;
//: if not last
    tiny_clear(y, units);
//: endif
    for (u = 0; u < units; u++) {
        const tiny_int sum = tiny_sum_@layer.name@(w, x, n, start);
//: if last
        h[u] = sum;
//: else
        if (sum > 0) {
            tiny_set(y, u);
        }
//: endif
        w += TINY_STRIDE(n);
    }
}
