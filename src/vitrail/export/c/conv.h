//: if last
/* The sums of units that each read every window. */
static inline void tiny_conv_@layer.name@_last(
    const tiny_stored *w, const tiny_word *x, tiny_int *h, tiny_index units, const tiny_windows *g)
//: else
/* Which sums of units are positive that each read every window. */
static inline void tiny_conv_@layer.name@(
    const tiny_stored *w, const tiny_word *x, tiny_word *y, tiny_index units, const tiny_windows *g)
//: endif
{
    tiny_word window[TINY_WORDS(TINY_MOST_WINDOW)];
//: if any_masked
    tiny_word mask[TINY_WORDS(TINY_MOST_WINDOW)];
//: endif
    tiny_index row, column, u, n;
    TINY_NEAR(tiny_windows, g);
    n = (tiny_index)g->channels * g->kernel_rows * g->kernel_columns;
//: if not last
    tiny_clear(y, units * g->rows * g->columns);
//: endif
    for (row = 0; row < g->rows; row++) {
        for (column = 0; column < g->columns; column++) {
            const tiny_stored *weights = w;
            tiny_int start;
//: if any_masked
            tiny_window(g, x, 0, g->channels, row, column, window, mask);
//: else
            tiny_window(g, x, 0, g->channels, row, column, window);
//: endif
            start = @sum_start(layer, "window", "n")@;
            for (u = 0; u < units; u++) {
                const tiny_index unit = (u * g->rows + row) * g->columns + column;
//: if layer.masked
                const tiny_int sum = tiny_sum_@layer.name@(weights, window, mask, n, start);
//: else
                const tiny_int sum = tiny_sum_@layer.name@(weights, window, n, start);
//: endif
//: if last
                h[unit] = sum;
//: else
                if (sum > 0) {
                    tiny_set(y, unit);
                }
//: endif
                weights += TINY_STRIDE(n);
            }
        }
    }
}
