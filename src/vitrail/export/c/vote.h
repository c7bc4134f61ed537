//: set networks = rule.votes.shape[1]
//: set place = ("net" if nets else "0") if one else "net * %du + k" % networks if nets else "k"
//: set vote = "1" if plain else "(tiny_score)" ~ read(vote_type, "tiny_votes + " ~ place)
//: set times = "" if plain else vote ~ " * "
//: set margin = "tiny_clip(2 * %s - 1)" if rule.clips else "(2 * %s - 1)"
//: set output = "tiny_output(%s, x%s)" % (place, ", start" if started else "")
//: set start_argument = ", start" if started else ""
//: set start_parameter = ", tiny_int start" if started else ""
//: set start_of_bits = ", tiny_start(bits->word)" if started else ""
//: if plan.last_low == 0 and not rule.clips
//: set vote_of_h = "%s ? %s : -%s" % (output, vote, vote)
//: else
//: set vote_of_h = times ~ margin % ("(tiny_score)" ~ output)
//: endif
//: set net_argument = ", net" if own or net_most else ""
//: set net_parameter = ", tiny_index net" if own or net_most else ""
//: set table_of_net = "net * %du + " % tables[0]|length if own else ""
//: if not plain
/* Votes of networks. */
@table(vote_type, "tiny_votes", rule.votes.ravel().tolist())@

//: endif
//: if net_most
@table("uint32_t", "tiny_most", rule.most)@

//: endif
//: if several
/* Outputs of network i of all. */
static inline void tiny_outputs(tiny_index i, const tiny_word *x0, tiny_int *h)
//: else
/* The output of network i of all. */
static inline tiny_int tiny_output(tiny_index i, const tiny_word *x0@start_parameter@)
//: endif
{
//: set at = namespace(x="x0", layer=0)
//: set step = "" if plan.last_low is none else " > 0 ? 1 : %d" % plan.last_low
//: for stage in plan.stages
//: set y = "x%d" % loop.index
//: if not loop.last
    tiny_word @y@[TINY_WORDS(@stage.outputs@u)];
//: endif
//: if stage.is_pool
    tiny_pool(@at.x@, @y@, &tiny_windows_@loop.index0@);
//: else
//: set stride = "(%du * TINY_STRIDE(%du))" % (stage.units, stage.fan_in)
//: set weights = "(const tiny_stored *)tiny_weights_%d + i * %s" % (at.layer, stride)
//: set function = ("tiny_conv_" if stage.windows else "tiny_dense_") ~ stage.name
//: set where = "&tiny_windows_%d" % loop.index0 if stage.windows else "%du" % stage.fan_in
//: set at.layer = at.layer + 1
//: if not loop.last
    @function@(@weights@, @at.x@, @y@, @stage.units@u, @where@);
//: elif several
    @function@_last(@weights@, @at.x@, h, @stage.units@u, @where@);
//: if step
    for (i = 0; i < TINY_CLASSES; i++) {
        h[i] = h[i]@step@;
    }
//: endif
//: elif stage.windows
    tiny_int h[1];
    @function@_last(@weights@, @at.x@, h, @stage.units@u, @where@);
    return h[0]@step@;
//: else
//: set start = "start" if started else sum_start(stage, at.x, where)
    return tiny_sum_@stage.name@(@weights@, @at.x@, @where@, @start@)@step@;
//: endif
//: endif
//: set at.x = y
//: endfor
}

//: if started
/* Where every sum begins: as if the weights of all bits that are 1 were -1. */
static inline tiny_int tiny_start(const tiny_word *x)
{
    return @sum_start(plan.last, "x", "%du" % plan.last.fan_in)@;
}

//: endif
//: if rule.clips
/* An odd number, clipped. */
static inline tiny_score tiny_clip(tiny_score margin)
{
    if (margin > @rule.clip@) {
        return @rule.clip@;
    }
    return margin < -@rule.clip@ ? -@rule.clip@ : margin;
}

//: endif
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
            tiny_score lead = @2 * plan.last.fan_in + 2@;
            for (d = 0; d < TINY_CLASSES; d++) {
                const tiny_score ahead = (tiny_score)h[c] - h[d] + (c < d); /* first of equals */
                if (c != d && ahead < lead) {
                    lead = ahead;
                }
            }
            score[c] += @times ~ margin % "lead"@;
        }
    }
}
//: else
//: if nets
//: if rest
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
//: if one
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
//: if rest

/* The scores of all classes. */
static inline void tiny_scores(const tiny_word *x, tiny_score *score)
{
    tiny_index net;
//: if started
    const tiny_int start = tiny_start(x);
//: endif
    for (net = TINY_CLASSES; net-- > 0;) { /* downwards: fewer registers */
        score[net] = tiny_score_of(x@start_argument@, net);
    }
}
//: endif
//: endif

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

//: endif
/* Probabilities in parts of 65535, by @"score" if direct else "its level from 0 to 256"@@" and net" if own else ""@. */
@table("uint16_t", "tiny_probabilities", tables|sum(start=[]))@
//: if by_order
/* Numbers in the same order, where only the largest is asked for. */
@table("uint8_t", "tiny_orders", orders)@
//: endif

/* Where the probability of a score stands in its table. */
static inline tiny_index tiny_place(tiny_score score@net_parameter@)
{
//: if direct
    return @table_of_net@(tiny_index)(score - (@rule.scores.start@)) / @rule.scores.step@u;
//: else
//: if net_most
    const @"uint64_t" if wide else "uint32_t"@ most = TINY_LOAD32(tiny_most + net); /* no score is larger */
    return @table_of_net@(tiny_index)@"" if wide else "tiny_divide"@(((@"uint64_t" if wide else "uint32_t"@)score + most) * 256u @"/" if wide else ","@ (2u * most));
//: else
//: if rule.product
    return @table_of_net@(tiny_index)(((uint32_t)score + @rule.most|max@u) * @rule.product[0]@u >> @rule.product[1]@);
//: else
    return @table_of_net@(tiny_index)@"" if wide else "tiny_divide"@(((@"uint64_t" if wide else "uint32_t"@)score + @rule.most|max@u) * 256u @"/" if wide else ","@ @2 * rule.most|max@u);
//: endif
//: endif
//: endif
}

//: if two
/* The class of a row of bits: 0 or 1, or a negative code. */
static inline int tiny_predict_bits(const tiny_bits *bits)
{
    return bits ? tiny_score_of(bits->word@start_of_bits@) >= @rule.cut@ : TINY_NULL;
}

/* The class of a score, and the probability of each class in parts of 65535. */
static inline int tiny_proba_of(tiny_score score, uint16_t *proba)
{
    proba[1] = TINY_LOAD16(tiny_probabilities + tiny_place(score));
    proba[0] = (uint16_t)(65535u - proba[1]);
    return proba[1] > 32767u;
}

/* The same of a row of bits, or a negative code. */
static inline int tiny_proba_bits(const tiny_bits *bits, uint16_t *proba)
{
    if (!bits || !proba) {
        return TINY_NULL;
    }
    return tiny_proba_of(tiny_score_of(bits->word@start_of_bits@), proba);
}
//: else
//: if pairs
/* What a class costs in a pair that it wins with this probability. */
static inline uint32_t tiny_cost(uint32_t probability)
{
    return tiny_divide(@costs@u, probability < @least@u ? @least@u : probability);
}

/* The class of the highest score, the first of equals. */
static inline int tiny_best(const tiny_word *x, uint32_t *score)
{
    int c, d, best = 0;
    tiny_index net = 0;
//: if started
    const tiny_int start = tiny_start(x);
//: endif
    for (c = 0; c < TINY_CLASSES; c++) {
        score[c] = 0;
    }
    for (c = 0; c < TINY_CLASSES; c++) {
        for (d = c + 1; d < TINY_CLASSES; d++) {
            const tiny_score high = tiny_score_of(x@start_argument@, net);
            const uint16_t probability = TINY_LOAD16(tiny_probabilities + tiny_place(high@net_argument@));
            score[c] += tiny_cost(65535u - probability);
            score[d] += tiny_cost(probability);
            net++;
        }
    }
    for (c = 0; c < TINY_CLASSES; c++) {
        score[c] = tiny_divide(@costs@u, score[c] - @certain@u);
        if (score[c] > score[best]) {
            best = c;
        }
    }
    return best;
}

/* The class of a row of bits: from 0 on, or a negative code. */
static inline int tiny_predict_bits(const tiny_bits *bits)
{
    uint32_t score[TINY_CLASSES];
    return bits ? tiny_best(bits->word, score) : TINY_NULL;
}

/* The same, and the probability of each class in parts of 65535. */
static inline int tiny_proba_bits(const tiny_bits *bits, uint16_t *proba)
{
    uint32_t score[TINY_CLASSES], total = 0, left = 65535u;
    int c, best;
    if (!bits || !proba) {
        return TINY_NULL;
    }
    best = tiny_best(bits->word, score);
    for (c = 0; c < TINY_CLASSES; c++) {
        total += score[c];
    }
    for (c = 0; c < TINY_CLASSES; c++) {
        proba[c] = (uint16_t)tiny_divide(score[c] * 65535u, total);
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
//: if ranked == "score"
    tiny_score most = score[0]; /* probabilities rise with scores */
    for (net = 1; net < TINY_CLASSES; net++) {
        const tiny_score rank = score[net];
//: else
    tiny_index most = 0;
    for (net = 0; net < TINY_CLASSES; net++) {
        const tiny_index place = tiny_place(score[net]@net_argument@);
//: if ranked == "level"
        const tiny_index rank = place; /* probabilities rise with levels */
//: else
        const tiny_index rank = @"TINY_LOAD8(tiny_orders" if by_order else "TINY_LOAD16(tiny_probabilities"@ + place);
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
static inline int tiny_proba_of(const tiny_score *score, uint16_t *proba)
{
    uint32_t total = 0, left = 65535u;
    int best = 0;
    tiny_index net;
    for (net = 0; net < TINY_CLASSES; net++) {
        proba[net] = TINY_LOAD16(tiny_probabilities + tiny_place(score[net]@net_argument@));
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
    return tiny_proba_of(score, proba);
}
//: endif
//: endif
