//: if "several" in flags
/* Outputs of network i of all. */
static inline void tiny_outputs(tiny_index i, const tiny_word *x0, tiny_int *h)
//: else
/* The output of network i of all. */
static inline tiny_int tiny_output(tiny_index i, const tiny_word *x0@start_parameter@)
//: endif
{
@network@
}

//: if "started" in flags
/* Where every sum begins: as if the weights of all bits that are 1 were -1. */
static inline tiny_int tiny_start(const tiny_word *x)
{
    return @start@;
}

//: endif
//: if "clips" in flags
/* An odd number, clipped. */
static inline tiny_score tiny_clip(tiny_score margin)
{
    if (margin > @clip@) {
        return @clip@;
    }
    return margin < -@clip@ ? -@clip@ : margin;
}

//: endif
//: if "several" in flags
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
            score[c] += @vote_of_lead@;
        }
    }
}
//: else
//: if "nets" in flags
//: if "rest" in flags
/* The score of a class against all others. */
//: else
/* The score of a pair of classes: positive for the second. */
//: endif
static inline tiny_score tiny_score_of(const tiny_word *x@start_parameter@, tiny_index net)
//: else
/* The score of a row: large for the second class. */
static inline tiny_score tiny_score_of(const tiny_word *x@start_parameter@)
//: endif
{
//: if "one" in flags
    return @vote_of_h@;
//: else
    tiny_score score = 0;
    tiny_index k;
    for (k = 0; k < @networks@u; k++) {
        score += @vote_of_h@;
    }
    return score;
//: endif
}
//: if "rest" in flags

/* The scores of all classes. */
static inline void tiny_scores(const tiny_word *x, tiny_score *score)
{
    tiny_index net;
//: if "started" in flags
    const tiny_int start = tiny_start(x);
//: endif
    for (net = TINY_CLASSES; net-- > 0;) { /* downwards: fewer registers */
        score[net] = tiny_score_of(x@start_argument@, net);
    }
}
//: endif
//: endif

//: if "divides" in flags
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

//: endif
/* Probabilities in parts of 65535, by @by@@by_net@. */
@chances@
//: if "by_order" in flags
/* Numbers in the same order, where only the largest is asked for. */
@orders@
//: endif

/* Where the probability of a score stands in its table. */
static inline tiny_index tiny_place(tiny_score score@net_parameter@)
{
//: if "direct" in flags
    return @table_of_net@(tiny_index)(score - (@first@)) / @step@u;
//: else
//: if "net_most" in flags
    const @wide@ most = TINY_LOAD32(tiny_most + net); /* no score is larger */
    return @table_of_net@(tiny_index)@divide@(((@wide@)score + most) * 256u @over@ (2u * most));
//: else
//: if "multiplies" in flags
    return @table_of_net@(tiny_index)(((uint32_t)score + @most@u) * @multiplier@u >> @shift@);
//: else
    return @table_of_net@(tiny_index)@divide@(((@wide@)score + @most@u) * 256u @over@ @twice@u);
//: endif
//: endif
//: endif
}

//: if "two" in flags
/* The class of a row of bits: 0 or 1, or a negative code. */
static inline int tiny_predict_bits(const tiny_bits *bits)
{
    return bits ? tiny_score_of(bits->word@start_of_bits@) >= @cut@ : TINY_NULL;
}

/* The class of a score, and the probability of each class in parts of 65535. */
static inline int tiny_chances_of(tiny_score score, uint16_t *proba)
{
    proba[1] = TINY_LOAD16(tiny_chances + tiny_place(score));
    proba[0] = (uint16_t)(65535u - proba[1]);
    return proba[1] > 32767u;
}

/* The same of a row of bits, or a negative code. */
static inline int tiny_proba_bits(const tiny_bits *bits, uint16_t *proba)
{
    if (!bits || !proba) {
        return TINY_NULL;
    }
    return tiny_chances_of(tiny_score_of(bits->word@start_of_bits@), proba);
}
//: else
//: if "pairs" in flags
/* The class that wins most in all pairs, the first of equals; `wins` add up to 65535 a pair. */
static inline int tiny_best(const tiny_word *x, uint32_t *wins)
{
    int c, d, best = 0;
    tiny_index net = 0;
//: if "started" in flags
    const tiny_int start = tiny_start(x);
//: endif
    for (c = 0; c < TINY_CLASSES; c++) {
        wins[c] = 0;
    }
    for (c = 0; c < TINY_CLASSES; c++) {
        for (d = c + 1; d < TINY_CLASSES; d++) {
            const tiny_score score = tiny_score_of(x@start_argument@, net);
            const uint16_t chance = TINY_LOAD16(tiny_chances + tiny_place(score@net_argument@));
            wins[c] += 65535u - chance;
            wins[d] += chance;
            net++;
        }
    }
    for (c = 1; c < TINY_CLASSES; c++) {
        if (wins[c] > wins[best]) {
            best = c;
        }
    }
    return best;
}

/* The class of a row of bits: from 0 on, or a negative code. */
static inline int tiny_predict_bits(const tiny_bits *bits)
{
    uint32_t wins[TINY_CLASSES];
    return bits ? tiny_best(bits->word, wins) : TINY_NULL;
}

/* The same, and the probability of each class in parts of 65535. */
static inline int tiny_proba_bits(const tiny_bits *bits, uint16_t *proba)
{
    uint32_t wins[TINY_CLASSES], left = 65535u;
    int c, best;
    if (!bits || !proba) {
        return TINY_NULL;
    }
    best = tiny_best(bits->word, wins);
    for (c = 0; c < TINY_CLASSES; c++) {
        proba[c] = (uint16_t)tiny_divide(wins[c], @num_pairs@u);
        left -= proba[c];
    }
    proba[best] = (uint16_t)(proba[best] + left);
    return best;
}
//: else
/* The class of the highest probability, the first of equals. */
static inline int tiny_best(const tiny_score *score)
{
    tiny_index net;
    int best = 0;
//: if "by_score" in flags
    tiny_score most = score[0]; /* probabilities rise with scores */
    for (net = 1; net < TINY_CLASSES; net++) {
        const tiny_score rank = score[net];
//: else
    tiny_index most = 0;
    for (net = 0; net < TINY_CLASSES; net++) {
        const tiny_index place = tiny_place(score[net]@net_argument@);
//: if "by_place" in flags
        const tiny_index rank = place; /* probabilities rise with levels */
//: else
        const tiny_index rank = @load_rank@ + place);
//: endif
//: endif
        if (rank > most) {
            most = rank;
            best = (int)net;
        }
    }
    return best;
}

/* The same, and the probability of each class in parts of 65535. */
static inline int tiny_chances_of(const tiny_score *score, uint16_t *proba)
{
    uint32_t total = 0, left = 65535u;
    int best = 0;
    tiny_index net;
    for (net = 0; net < TINY_CLASSES; net++) {
        proba[net] = TINY_LOAD16(tiny_chances + tiny_place(score[net]@net_argument@));
        total += proba[net];
        if (proba[net] > proba[best]) {
            best = (int)net;
        }
    }
    total += total == 0;
    for (net = 0; net < TINY_CLASSES; net++) {
        proba[net] = (uint16_t)tiny_divide((uint32_t)proba[net] * 65535u, total);
        left -= proba[net];
    }
    proba[best] = (uint16_t)(proba[best] + left);
    return best;
}

/* The class of a row of bits: from 0 on, or a negative code. */
static inline int tiny_predict_bits(const tiny_bits *bits)
{
    tiny_score score[TINY_CLASSES];
    if (!bits) {
        return TINY_NULL;
    }
    tiny_scores(bits->word, score);
    return tiny_best(score);
}

/* The same, and the probability of each class in parts of 65535. */
static inline int tiny_proba_bits(const tiny_bits *bits, uint16_t *proba)
{
    tiny_score score[TINY_CLASSES];
    if (!bits || !proba) {
        return TINY_NULL;
    }
    tiny_scores(bits->word, score);
    return tiny_chances_of(score, proba);
}
//: endif
//: endif
