#!/bin/bash
# Preparation jobs as tasks of launchers: 1, 3 and 4 tasks write the same bytes as one process, running the job again
# completes what a killed task left, and missing pieces are reported.
#
#     prep_tasks.sh STOKER mpirun|mpich|torchrun|slurm-array|kubernetes|hand
set -u
stoker=$1 launcher=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
for variable in $(compgen -e | grep -E '^(RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|OMPI_|PMIX_|PMI_|MV2_|SLURM_|JOB_COMPLETION)'); do unset "$variable"; done

die() { echo "$*" >&2; tail -n 5 messages.* >&2 2>/dev/null; exit 1; }

# Runs one of N tasks as the launcher would.
task() { # TASK TASKS COMMAND...
    local task=$1 tasks=$2
    shift 2
    case $launcher in
    torchrun) RANK=$task WORLD_SIZE=$tasks LOCAL_RANK=$task LOCAL_WORLD_SIZE=$tasks MASTER_ADDR=127.0.0.1 \
        MASTER_PORT=29500 TORCHELASTIC_RUN_ID=test exec "$@" ;;
    slurm-array) ENVIRONMENT=BATCH SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=$((2 * task + 1)) \
        SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_MAX=$((2 * tasks - 1)) SLURM_ARRAY_TASK_STEP=2 SLURM_ARRAY_TASK_COUNT=$tasks exec "$@" ;;
    kubernetes) JOB_COMPLETION_INDEX=$task exec "$@" "--tasks=$tasks" ;;
    hand) MY_TASK=$task exec "$@" --task "$task/$tasks" ;;
    esac
}

launch() { # TASKS COMMAND...: all of them at once
    local tasks=$1 task pids=() status=0
    shift
    case $launcher in
    mpirun) OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n "$tasks" "$@" </dev/null 2>messages.all
        return ;;
    mpich) mpiexec.mpich -n "$tasks" "$@" </dev/null 2>messages.all
        return ;;
    esac
    for ((task = 0; task < tasks; task++)); do
        (task "$task" "$tasks" "$@") 2>"messages.$task" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || status=1; done
    return $status
}

# Rows take some time, so that a task can be killed in the middle.
cat >job.yaml <<'Y'
dataset:
  fields:
    x: {synthetic: {count: 2000, shape: [4096], dtype: u8, seed: 5, read_time: 2ms}}
    y: {synthetic: {count: 2000, shape: [], dtype: i64, seed: 6}}
prep: {order: random, seed: 3, piece_bytes: 1MiB, num_workers: 32}
output: {path: out.beton}
Y
"$stoker" prep job.yaml --set output.path=whole.beton --launcher=none --quiet 2>messages.whole || die "one process failed"

for tasks in 1 3 4; do
    rm -rf out.beton*  out.*json*
    launch $tasks "$stoker" prep job.yaml >printed || die "$tasks tasks failed"
    cmp whole.beton out.beton || die "$tasks tasks: the output differs"
    [ ! -e out.beton.prep ] || die "$tasks tasks: the work folder is still there"
    [ $tasks = 1 ] || launch $tasks "$stoker" prep job.yaml >printed || die "$tasks tasks failed although everything was done"
    [ ! -e out.beton.prep ] || die "$tasks tasks left a work folder although everything was done"
    "$stoker" verify out.manifest.json >verified 2>&1 || die "$tasks tasks: $(cat verified)"
done

# One task of four is killed. The next run makes what is missing, whatever the launcher did to the other tasks. (The
# other launchers differ only in their variables, so two of them are enough.)
case $launcher in
mpirun | mpich | torchrun)
sed 's/read_time: 2ms/read_time: 20ms/' job.yaml >slow.yaml
rm -rf out.beton* out.*json*
launch 4 bash -c '
    me=${RANK:-${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_ARRAY_TASK_ID:-${JOB_COMPLETION_INDEX:-${MY_TASK:-0}}}}}}
    [ "$me" = 1 ] && set -- "$@" --workers=1 # ten seconds of work
    "$@" & pid=$!
    if [ "$me" = 1 ]; then sleep 0.4; kill -9 $pid; fi
    wait $pid' bash "$stoker" prep slow.yaml >printed && die "the run succeeded although a task was killed"
[ ! -e out.beton ] || die "there is an output without the killed task's pieces"
launch 4 "$stoker" prep slow.yaml >printed || die "the second run failed"
cmp whole.beton out.beton || die "killed and run again: the output differs"
;;
esac

# A task that never ran.
[ "$launcher" != mpirun ] && [ "$launcher" != mpich ] || { echo "tasks under $launcher: fine"; exit 0; }
rm -rf out.beton* out.*json*
for task in 0 1 3; do
    (task $task 4 "$stoker" prep job.yaml) >printed.$task 2>messages.$task || die "task $task of 4 failed"
    grep -q 'missing' printed.$task || die "task $task does not say what is missing: $(cat printed.$task)"
done
"$stoker" prep job.yaml --merge >printed 2>messages.merge && die "--merge succeeded without task 2"
grep -Eq 'missing pieces: [0-9]+ of [0-9]+ .[0-9]+ to [0-9]+.' messages.merge || die "--merge does not name the missing pieces"
[ ! -e out.beton ] || die "there is an output without task 2's pieces"
(task 2 4 "$stoker" prep job.yaml) >printed.2 2>messages.2 || die "task 2 of 4 failed"
cmp whole.beton out.beton || die "after the last of four tasks: the output differs"
"$stoker" prep job.yaml --merge >printed 2>messages.merge || die "--merge failed although everything was done: $(cat messages.merge)"
echo "tasks under $launcher: fine"
