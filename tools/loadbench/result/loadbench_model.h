/* loadbench_model.h: throughput of a pipeline with known stage times: workers fill slots tile by tile, a thread copies
 * them to a device if there is one, and a consumer takes them in order. Predicts the effect of other numbers of workers
 * and slots. */
#ifndef LOADBENCH_MODEL_H
#define LOADBENCH_MODEL_H

struct lb_model {
    int workers, slots; /* workers 0: inline, on the consumer's thread */
    int device_slots;   /* 0: no device */
    int tiles;          /* of a batch, 1 or more */
    double work_s;      /* worker time of a batch, sum over its tiles */
    double copy_s, consumer_s;
    double cpu_s; /* processor time of a batch, all threads together */
    double cores; /* that the process may use; 0: unlimited */
};

/* Seconds per batch in the steady state. Times are taken as equal for all tiles and batches; real times vary, so
 * compare two models rather than a model with a run. */
double lb_model_batch_s(const struct lb_model *model);

#endif
