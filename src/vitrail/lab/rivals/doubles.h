@code@
static int best(const tiny_row *row)
{
    double in[@features|length@], out[@[classes, 2]|max@];
    int i, most = 0;
//: for feature in features
    in[@loop.index0@] = @feature@;
//: endfor
    score(in, out);
    for (i = 1; i < @classes@; i++) if (out[i] > out[most]) most = i;
    return most;
}
