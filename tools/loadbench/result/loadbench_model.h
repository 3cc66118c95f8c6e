/* loadbench_model.h: what a pipeline of known times delivers: workers fill slots tile by tile, a thread copies them to
 * a device if there is one, and a consumer takes them in order. It predicts what other numbers of workers and slots
 * give.
 */
#ifndef LOADBENCH_MODEL_H
#define LOADBENCH_MODEL_H

struct lb_model {
    int workers, slots; /* workers 0: the consumer's thread does their work */
    int device_slots;   /* 0: no device */
    int tiles;          /* of a batch, 1 or more */
    double work_s;      /* of the workers for a batch, all its tiles together */
    double copy_s, consumer_s;
    double cpu_s; /* processor time of a batch, all threads together */
    double cores; /* that the process may use; 0: as many as it likes */
};

/* Seconds from batch to batch once it runs evenly. Times are taken as equal for all tiles and batches: the swings of
 * real ones are left out, so compare two models rather than a model with a run. */
double lb_model_batch_s(const struct lb_model *model);

#endif
