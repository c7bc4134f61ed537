/* For every channel and window, whether some bit of it is 1. */
static inline void tiny_pool(const tiny_word *x, tiny_word *y, const tiny_windows *g)
{
    tiny_word window[TINY_WORDS(TINY_MOST_WINDOW)];
//: if any_masked
    tiny_word mask[TINY_WORDS(TINY_MOST_WINDOW)];
//: endif
    tiny_index c, row, column, i, bit = 0;
    TINY_NEAR(tiny_windows, g);
    tiny_clear(y, (tiny_index)g->channels * g->rows * g->columns);
    for (c = 0; c < g->channels; c++) {
        for (row = 0; row < g->rows; row++) {
            for (column = 0; column < g->columns; column++) {
                tiny_word any = 0;
//: if any_masked
                tiny_window(g, x, c * g->height * g->width, 1, row, column, window, mask);
//: else
                tiny_window(g, x, c * g->height * g->width, 1, row, column, window);
//: endif
                for (i = 0; i < TINY_WORDS(TINY_MOST_WINDOW); i++) {
                    any = (tiny_word)(any | window[i]);
                }
                if (any) {
                    tiny_set(y, bit);
                }
                bit++;
            }
        }
    }
}
