//: set name, count = sums.name, sums.start|length
//: if looped
/* Where the value of a column is above a cut, sums change by a jump each. */
static const struct {
//: if cuts_in_steps
    @cut_type@ cut;
//: endif
    @column_type@ column;@" /* twice, and 1 if a missing number counts too */" if flagged else ""@
    @jump_type@ jump[@count@];
} @name@_steps[] TINY_FLASH = {
//: for test in sums.tests
    {@cuts[loop.index0]|int32_literal ~ ", " if cuts_in_steps else ""@@places[loop.index0]@, {@test.jump|join(", ")@}}@"" if loop.last else ","@
//: endfor
};
//: if apart
@table(cut_type, name ~ "_cuts", cuts|map("int32_literal"))@
//: endif
//: if net_loop
@table(start_type, name ~ "_starts", sums.start)@
//: endif

//: endif
/* @sums.about@; 0, or a negative code. */
static inline int @name@(const tiny_row *row, tiny_score *score)
{
//: if looped
    const @field.type@ *value = (const @field.type@ *)(const void *)row;
    tiny_index i;
//: endif
//: if net_loop
    tiny_index net;
//: else
    tiny_score @begun@;
//: endif
//: if not looped and real
    int32_t v;
//: endif
    if (!row) {
        return TINY_NULL;
    }
//: if not looped
#if defined(__GNUC__)
    @opaque@ /* as if not known, or code is copied for what is */
#endif
//: endif
//: for field, tests in groups
//: set value = "v" if field.kind == "real" else field.name
//: if field.kind == "real"
    v = tiny_order(@field.name@);
//: endif
//: if field.invalid(value)
    if (@field.invalid(value)@) {
        return TINY_BAD_INPUT;
    }
//: endif
//: for test in tests
    if (@test.condition(value)@) {
//: for jump in test.jump
//: if jump
        s@loop.index0@ @"+" if jump > 0 else "-"@= @jump|abs@;
//: endif
//: endfor
    }
//: endfor
//: endfor
//: if net_loop
    for (net = 0; net < @count@u; net++) {
        tiny_score s = @read(start_type, name ~ "_starts + net")@;
//: endif
//: if looped
//: set step = name ~ "_steps[i]"
//: set value = "value[c >> 1]" if flagged else "value[c]"
//: set value = "tiny_order(%s)" % value if real else value
    for (i = 0; i < @sums.tests|length@u; i++) {
        const tiny_index c = @read(column_type, "&%s.column" % step)@;
        const @"int32_t" if real else field.type@ v = @"(int32_t)((uint32_t)%s - (c & 1u))" % value if flagged else value@;
//: if field.invalid("v") and not groups
        if (@field.invalid("v")@) {
            return TINY_BAD_INPUT;
        }
//: endif
//: if cuts_in_steps
        if (v > @read(cut_type, "&%s.cut" % step)@) {
//: elif apart
        if (v > @read(cut_type, name ~ "_cuts + i")@) {
//: else
        if (v > @cuts[0]|int32_literal@) {
//: endif
//: if net_loop
            s += @read(jump_type, "%s.jump + net" % step)@;
//: else
//: for start in sums.start
            s@loop.index0@ += @read(jump_type, "%s.jump + %d" % (step, loop.index0))@;
//: endfor
//: endif
        }
    }
//: endif
//: if net_loop
        score[net@" + %du" % sums.first if sums.first else ""@] = s;
    }
//: endif
//: for i in range(sums.first)
    score[@i@] = 0;
//: endfor
//: if not net_loop
//: for start in sums.start
    score[@sums.first + loop.index0@] = s@loop.index0@;
//: endfor
//: endif
    return 0;
}
