#!/bin/bash
# Ranks under launchers: together they see every sample of an epoch once, in the same number of steps; a different
# number of ranks can resume their state; and the digests of the ranks add up.
#
#     ranks.sh READ mpirun|torchrun
set -u
read=$1 launcher=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for variable in $(compgen -e | grep -E '^(RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|OMPI_|PMIX_|PMI_|MV2_|SLURM_)'); do unset "$variable"; done

launch() { # RANKS COMMAND...
    local ranks=$1 rank pids=() status=0
    shift
    if [ "$launcher" = mpirun ]; then
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
            mpirun --oversubscribe -n "$ranks" "$@" </dev/null
        return
    fi
    for ((rank = 0; rank < ranks; rank++)); do
        RANK=$rank WORLD_SIZE=$ranks LOCAL_RANK=$rank LOCAL_WORLD_SIZE=$ranks MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 \
            TORCHELASTIC_RUN_ID=test "$@" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || status=1; done
    return $status
}

die() { echo "$*" >&2; exit 1; }

check_union() { # every sample of both epochs once
    cat "$folder"/rank-* | sort | uniq -c | awk '$1 != 1 {print "twice: " $0; bad = 1} {n++} END {exit bad || n != 2006}' ||
        die "$*: not every sample was read once"
}

sum_digests() { # of the lines on stdin
    python3 -c 'import sys; print("%032x" % (sum(int(line.split()[4], 16) for line in sys.stdin) % 2**128))'
}

source=$([ "$launcher" = mpirun ] && echo "Open MPI" || echo torchrun)
whole=
for ranks in 1 2 3 4; do
    rm -f "$folder"/*
    launch "$ranks" "$read" "$folder" 0 loader.digest=order >"$folder/printed" || die "$ranks ranks failed"
    [ "$(wc -l <"$folder/printed")" = "$ranks" ] || die "$ranks ranks: $(cat "$folder/printed")"
    for ((rank = 0; rank < ranks; rank++)); do
        grep -q "^$rank $ranks $source 84 " "$folder/printed" || die "rank $rank of $ranks: $(cat "$folder/printed")"
    done
    check_union "$ranks ranks"
    digest=$(sed 's/Open MPI/OpenMPI/' "$folder/printed" | sum_digests)
    whole=${whole:-$digest}
    [ "$digest" = "$whole" ] || die "$ranks ranks: digests add up to $digest, expected $whole"
done

# The number of ranks changes in the middle of epoch 0 and of epoch 1.
rm -f "$folder"/*
at=0
for change in "4 17" "2 30" "3 11" "1 0"; do
    launch ${change% *} "$read" "$folder" ${change#* } loader.num_workers=$((at % 3)) >"$folder/printed" || die "$change failed"
    for state in "$folder"/state.[1-9]; do
        [ ! -e "$state" ] || cmp -s "$state" "$folder/state.new" || die "$change: the ranks' states differ"
    done
    rm -f "$folder"/state.[1-9]
    mv "$folder/state.new" "$folder/state"
    at=$((at + 1))
done
check_union "4, 2, 3 and 1 ranks"

# Ranks of a tensor-parallel pair see the same samples.
rm -f "$folder"/*
launch 4 "$read" "$folder" 0 loader.replication=2 >"$folder/printed" || die "replication failed"
for rank in 0 2; do
    cmp -s "$folder"/rank-$rank.* "$folder"/rank-$((rank + 1)).* || die "ranks $rank and $((rank + 1)) differ"
    rm -f "$folder"/rank-$((rank + 1)).*
done
check_union "replicated ranks"

# A world size that contradicts the launcher is an error.
! launch 2 "$read" "$folder" 0 loader.world_size=5 >/dev/null 2>"$folder/errors" || die "a contradiction was accepted"
grep -q "found 5, but $source sets 2" "$folder/errors" || die "$(cat "$folder/errors")"
echo "ranks under $launcher: fine"
