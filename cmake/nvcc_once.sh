#!/bin/sh
# nvcc that remembers: kernels take a minute to compile and are the same in every build that is made for the same GPUs, so an
# object that was compiled by the same command from the same files is taken from CACHE (a folder that may be deleted).
#     nvcc_once.sh CACHE ROOT BUILD OBJECT KEY -- COMMAND...      COMMAND writes OBJECT and OBJECT.d; KEY: what else matters
set -eu
cache=$1 root=$2 build=$3 object=$4 key=$5
shift 6

hash=$({ # where the build lies is no part of what is compiled
    echo "$key"
    for word in "$@"; do
        echo "$word" | sed "s|$build||g; s|$root||g"
    done
    cat "$build"/include/stoker/version.h
    find "$root/include" "$root/src/base" "$root/src/tensor" "$root/src/gpu" \( -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
        LC_ALL=C sort -z | xargs -0 cat
} | sha256sum | cut -c1-32)

kept=$cache/$hash-$(basename "$object")
if [ ! -f "$kept" ] || [ ! -f "$kept.d" ]; then
    "$@"
    mkdir -p "$cache"
    # The newest fifty stay. Renamed when whole: two builds may run at once.
    find "$cache" -type f -name '*.o*' -printf '%T@ %p\n' | sort -rn | tail -n +101 | cut -d' ' -f2- | xargs -r rm -f
    sed "s|$object|@OBJECT@|g; s|$build|@BUILD@|g" "$object.d" >"$kept.d.$$" && mv "$kept.d.$$" "$kept.d"
    cp "$object" "$kept.$$" && mv "$kept.$$" "$kept"
else
    sed "s|@OBJECT@|$object|g; s|@BUILD@|$build|g" "$kept.d" >"$object.d"
    cp "$kept" "$object"
    touch "$kept" "$kept.d"
fi
