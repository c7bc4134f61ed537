//: if several
/* Outputs of network i of all. */
static inline void tiny_outputs(tiny_index i, const tiny_word *x0, tiny_int *h)
//: else
/* The output of network i of all. */
static inline tiny_int tiny_output(tiny_index i, const tiny_word *x0)
//: end
{
@network@
}

//: if clips
/* An odd number, clipped. */
static inline tiny_score tiny_clip(tiny_score margin)
{
    if (margin > @clip@) {
        return @clip@;
    }
    return margin < -@clip@ ? -@clip@ : margin;
}

//: end
//: if several
/* Scores of the classes: of each network, how far a class is ahead of its strongest rival. */
static inline void tiny_scores(const tiny_word *x, tiny_score *score)
{
    tiny_index k, c, d;
    for (c = 0; c < TINY_CLASSES; c++) {
        score[c] = 0;
    }
    for (k = 0; k < @networks@u; k++) {
        tiny_int h[TINY_CLASSES];
        tiny_outputs(k, x, h);
        for (c = 0; c < TINY_CLASSES; c++) {
            tiny_score lead = @far@;
            for (d = 0; d < TINY_CLASSES; d++) {
                const tiny_score ahead = (tiny_score)h[c] - h[d] + (c < d); /* first of equals */
                if (c != d && ahead < lead) {
                    lead = ahead;
                }
            }
            score[c] += @vote@@margin_lead@;
        }
    }
}
//: else
//: if nets
//: if rest
/* The score of a class against all others. */
//: else
/* The score of a pair of classes: positive for the second. */
//: end
static inline tiny_score tiny_score_of(const tiny_word *x, tiny_index net)
//: else
/* The score of a row: large for the second class. */
static inline tiny_score tiny_score_of(const tiny_word *x)
//: end
{
//: if one
    return @vote@@margin_h@;
//: else
    tiny_score score = 0;
    tiny_index k;
    for (k = 0; k < @networks@u; k++) {
        score += @vote@@margin_h@;
    }
    return score;
//: end
}
//: end

//: if divides
/* The whole part of a / b; bit by bit on cores that would call a far larger function for it. */
static inline uint32_t tiny_divide(uint32_t a, uint32_t b)
{
#if defined(__ARM_ARCH_6M__)
    uint32_t rest = 0;
    unsigned i;
    for (i = 0; i < 32; i++) {
        rest = rest << 1 | a >> 31;
        a <<= 1;
        if (rest >= b) {
            rest -= b;
            a |= 1u;
        }
    }
    return a;
#else
    return a / b;
#endif
}

//: end
//: if direct
/* Chances in parts of 65535, by score@by_net@. */
@tables@

static inline uint16_t tiny_chance(tiny_score score@net_parameter@)
{
    const tiny_index level = (tiny_index)(score - (@first@)) / @step@u;
    return TINY_LOAD16(tiny_chances + @table_of_net@level);
}
//: else
/* Chances in parts of 65535, by level of the score, 257@by_net@. */
@tables@

static inline uint16_t tiny_chance(tiny_score score@net_parameter@)
{
//: if net_most
    const @wide@ most = TINY_LOAD32(tiny_most + net); /* no score is larger */
    const tiny_index level = (tiny_index)@divide@(((@wide@)score + most) * 256u @over@ (2u * most));
//: else
    const tiny_index level = (tiny_index)@divide@(((@wide@)score + @most@u) * 256u @over@ @twice@u);
//: end
    return TINY_LOAD16(tiny_chances + @table_of_net@level);
}
//: end

//: if two
/* The class of a row of bits: 0 or 1, or a negative code. */
static inline int tiny_predict_bits(const tiny_bits *bits)
{
    return bits ? tiny_score_of(bits->word) >= @cut@ : TINY_NULL;
}

/* The same, and the chance of each class in parts of 65535. */
static inline int tiny_proba_bits(const tiny_bits *bits, uint16_t *proba)
{
    if (!bits || !proba) {
        return TINY_NULL;
    }
    proba[1] = tiny_chance(tiny_score_of(bits->word));
    proba[0] = (uint16_t)(65535u - proba[1]);
    return proba[1] > 32767u;
}
//: else
/* What classes score in the end, and the place of the highest, the first of equals. */
static inline int tiny_rank(const tiny_word *x, uint32_t *rank)
{
    int c, best = 0;
//: if pairs
    int d;
    tiny_index net = 0;
    for (c = 0; c < TINY_CLASSES; c++) {
        rank[c] = 0;
    }
    for (c = 0; c < TINY_CLASSES; c++) {
        for (d = c + 1; d < TINY_CLASSES; d++) {
            const uint16_t chance = tiny_chance(tiny_score_of(x, net)@net_argument@);
            rank[c] += 65535u - chance;
            rank[d] += chance;
            net++;
        }
    }
//: end
//: if rest
    for (c = 0; c < TINY_CLASSES; c++) {
        const tiny_index net = (tiny_index)c;
        rank[c] = tiny_chance(tiny_score_of(x, net)@net_argument@);
    }
//: end
//: if several
    tiny_score score[TINY_CLASSES];
    tiny_scores(x, score);
    for (c = 0; c < TINY_CLASSES; c++) {
        rank[c] = tiny_chance(score[c]);
    }
//: end
    for (c = 1; c < TINY_CLASSES; c++) {
        if (rank[c] > rank[best]) {
            best = c;
        }
    }
    return best;
}

/* The class of a row of bits: from 0 on, or a negative code. */
static inline int tiny_predict_bits(const tiny_bits *bits)
{
    uint32_t rank[TINY_CLASSES];
    return bits ? tiny_rank(bits->word, rank) : TINY_NULL;
}

/* The same, and the chance of each class in parts of 65535. */
static inline int tiny_proba_bits(const tiny_bits *bits, uint16_t *proba)
{
    uint32_t rank[TINY_CLASSES], left = 65535u;
//: if not pairs
    uint32_t total = 0;
//: end
    int c, best;
    if (!bits || !proba) {
        return TINY_NULL;
    }
    best = tiny_rank(bits->word, rank);
//: if not pairs
    for (c = 0; c < TINY_CLASSES; c++) {
        total += rank[c];
    }
    total += total == 0;
//: end
    for (c = 0; c < TINY_CLASSES; c++) {
//: if pairs
        proba[c] = (uint16_t)tiny_divide(rank[c], @num_pairs@u); /* ranks add up to 65535 a pair */
//: else
        proba[c] = (uint16_t)tiny_divide(rank[c] * 65535u, total);
//: end
        left -= proba[c];
    }
    proba[best] = (uint16_t)(proba[best] + left);
    return best;
}
//: end
