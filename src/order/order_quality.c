/* order_quality.c: see order_quality.h. */
#include "order_quality.h"
#include <math.h>
#include <string.h>

enum { MOST_ROWS = 4096, BATCHES = 64, AT_ONCE = 256 };

static double shuffled(int64_t samples, int64_t classes, int64_t rows)
{
    double size = (double)samples / (double)classes, none = 0; /* log of the probability that a class is not drawn */

    for (int64_t i = 0; i < rows; i++) {
        double left = (double)(samples - i);

        if (left <= size)
            return (double)classes;
        none += log1p(-size / left);
    }
    return (double)classes * -expm1(none);
}

static int64_t classes_of(const stki_order *order, int64_t first, int64_t rows, int64_t samples, int64_t classes,
                          uint8_t *seen)
{
    stki_position out[AT_ONCE];
    int64_t found = 0;

    memset(seen, 0, (size_t)classes);
    for (int64_t done = 0; done < rows; done += AT_ONCE) {
        int64_t part = rows - done < AT_ONCE ? rows - done : AT_ONCE;

        (void)stki_order_eval(order, 0, first + done, part, out, NULL);
        for (int64_t i = 0; i < part; i++) {
            int64_t its = (int64_t)((double)out[i].sample / (double)samples * (double)classes);

            its = its < classes ? its : classes - 1;
            found += !seen[its];
            seen[its] = 1;
        }
    }
    return found;
}

bool stki_order_measure(const stki_order *order, int64_t samples, int64_t batch, stki_order_quality *out)
{
    uint8_t seen[STKI_QUALITY_CLASSES];
    int64_t classes = samples < STKI_QUALITY_CLASSES ? samples : STKI_QUALITY_CLASSES;
    int64_t length = stki_order_length(order), rows = batch < MOST_ROWS ? batch : MOST_ROWS, batches, sum = 0;

    rows = rows < length ? rows : length;
    if (rows <= 0 || samples <= 0)
        return false;
    batches = length / rows < BATCHES ? length / rows : BATCHES;
    for (int64_t b = 0; b < batches; b++) /* whole batches, evenly spaced */
        sum += classes_of(order, length / rows * b / batches * rows, rows, samples, classes, seen);
    *out = (stki_order_quality){
        .classes = (double)sum / (double)batches, .shuffled = shuffled(samples, classes, rows), .batch = rows};
    out->quality = out->classes / out->shuffled;
    return true;
}
