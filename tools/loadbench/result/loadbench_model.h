/* loadbench_model.h: throughput of a pipeline with known stage times: workers fill slots tile by tile, a thread copies
 * them to a device if there is one, and a consumer takes them in order. Predicts the effect of other numbers of workers
 * and slots. */
#ifndef LOADBENCH_MODEL_H
#define LOADBENCH_MODEL_H

struct lb_model {
    int workers, slots; /* workers 0: inline, in the consumer's thread */
    int device_slots;   /* 0: no device */
    int tiles;          /* tiles of a batch, 1 or more */
    double work_s;      /* worker time of a batch, sum over its tiles */
    double copy_s, consumer_s;
    double cpu_s; /* CPU time of a batch, all threads together */
    double cores; /* processors that the process may use; 0: unlimited */
};

/* Seconds per batch in the steady state. All tiles and batches are assumed to take the same time. Because real times
 * vary, compare two models, not a model with a run. */
double lb_model_batch_s(const struct lb_model *model);

#endif
