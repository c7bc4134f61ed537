#define TINY_MOST_WINDOW @most@u /* bits of the largest window */

/* Windows of an image of bits in the order channel, row, column. */
typedef struct {
    @size@ channels, height, width; /* of the image */
    @size@ kernel_rows, kernel_columns;
    @size@ stride_rows, stride_columns;
//: if padded
    @size@ padding_rows, padding_columns;
//: endif
    @size@ rows, columns; /* how many windows there are */
} tiny_windows;

/* The bits of one window of `channels` channels, the first of which begins at the bit `at`. */
static inline void tiny_window(
    const tiny_windows *g, const tiny_word *x, tiny_index at, tiny_index channels,
//: if masked
    tiny_index row, tiny_index column, tiny_word *window, tiny_word *mask)
//: else
    tiny_index row, tiny_index column, tiny_word *window)
//: endif
{
    tiny_index i, j, bit = 0;
    row *= g->stride_rows;
    column *= g->stride_columns;
    tiny_clear(window, TINY_MOST_WINDOW);
//: if masked
    tiny_clear(mask, TINY_MOST_WINDOW);
//: endif
    for (; channels > 0; channels--) {
        for (i = row; i < row + g->kernel_rows; i++) {
            for (j = column; j < column + g->kernel_columns; j++) {
//: if padded
                if (i >= g->padding_rows && i - g->padding_rows < g->height &&
                    j >= g->padding_columns && j - g->padding_columns < g->width) {
                    const tiny_index from =
                        at + (i - g->padding_rows) * g->width + j - g->padding_columns;
//: if masked
                    tiny_set(mask, bit);
//: endif
                    if ((tiny_word)(x[from / TINY_WORD_BITS] >> (from % TINY_WORD_BITS)) & 1u) {
                        tiny_set(window, bit);
                    }
                }
//: else
                const tiny_index from = at + i * g->width + j;
                if ((tiny_word)(x[from / TINY_WORD_BITS] >> (from % TINY_WORD_BITS)) & 1u) {
                    tiny_set(window, bit);
                }
//: endif
                bit++;
            }
        }
        at += (tiny_index)g->height * g->width;
    }
}

//: for stage in plan.stages
//: if stage.windows
static const tiny_windows tiny_windows_@loop.index0@ TINY_FLASH = {@stage.windows.numbers(padded)|join(", ")@};
//: endif
//: endfor
