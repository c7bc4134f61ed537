//: if bias > 4
    for (tiny_index bit = TINY_BITS; bit < TINY_INPUTS; bit++) {
        tiny_set(bits->word, bit); /* constant inputs */
    }
//: else
//: for i in range(bias)
    TINY_SET(bits->word, @num_bits + i@u);
//: endfor
//: endif
