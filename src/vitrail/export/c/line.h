//: if loops
/* Where the value of a column is above a cut, sums change by a jump each. */
static const struct {
//: if cuts
    @cut_type@ cut;
//: end
    @column_type@ column;@flagged@
    @jump_type@ jump[@count@];
} @name@_steps[] TINY_FLASH = {
@steps@
};
//: if apart
@cuts@
//: end
//: if net_loop
@starts@
//: end

//: end
/* @about@; 0, or a negative code. */
static inline int @name@(const tiny_row *row, tiny_score *score)
{
//: if loops
    const @field@ *value = (const @field@ *)(const void *)row;
    tiny_index i;
//: end
//: if net_loop
    tiny_index net;
//: else
    tiny_score @sums@;
//: end
//: if reals
    int32_t v;
//: end
    if (!row) {
        return TINY_NULL;
    }
//: if spelled
#if defined(__GNUC__)
@opaque@ /* as if not known, or code is copied for what is */
#endif
//: end
@tests@
//: if net_loop
    for (net = 0; net < @count@u; net++) {
        tiny_score s = @load_start@;
//: end
//: if loops
    for (i = 0; i < @num_steps@u; i++) {
        const tiny_index c = @load_column@;
        const @value_type@ v = @value@;
//: if check
        if (@strange@) {
            return TINY_BAD_INPUT;
        }
//: end
        if (v > @cut@) {
@adds@
        }
    }
//: end
//: if net_loop
        score[net@offset@] = s;
    }
//: end
@stores@
    return 0;
}
