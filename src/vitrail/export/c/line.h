//: if "loops" in flags
/* Where the value of a column is above a cut, sums change by a jump each. */
static const struct {
//: if "cuts" in flags
    @cut_type@ cut;
//: endif
    @column_type@ column;@flagged@
    @jump_type@ jump[@count@];
} @name@_steps[] TINY_FLASH = {
@steps@
};
//: if "apart" in flags
@cuts@
//: endif
//: if "net_loop" in flags
@starts@
//: endif

//: endif
/* @about@; 0, or a negative code. */
static inline int @name@(const tiny_row *row, tiny_score *score)
{
//: if "loops" in flags
    const @field@ *value = (const @field@ *)(const void *)row;
    tiny_index i;
//: endif
//: if "net_loop" in flags
    tiny_index net;
//: else
    tiny_score @sums@;
//: endif
//: if "reals" in flags
    int32_t v;
//: endif
    if (!row) {
        return TINY_NULL;
    }
//: if "spelled" in flags
#if defined(__GNUC__)
@opaque@ /* as if not known, or code is copied for what is */
#endif
//: endif
@tests@
//: if "net_loop" in flags
    for (net = 0; net < @count@u; net++) {
        tiny_score s = @load_start@;
//: endif
//: if "loops" in flags
    for (i = 0; i < @num_steps@u; i++) {
        const tiny_index c = @load_column@;
        const @value_type@ v = @value@;
//: if "check" in flags
        if (@strange@) {
            return TINY_BAD_INPUT;
        }
//: endif
        if (v > @cut@) {
@adds@
        }
    }
//: endif
//: if "net_loop" in flags
        score[net@offset@] = s;
    }
//: endif
@stores@
    return 0;
}
