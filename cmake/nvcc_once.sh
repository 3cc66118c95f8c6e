#!/bin/sh
# Runs nvcc, with a cache of its output. Kernels take a minute to compile and are the same in all builds for the same GPUs, so an
# object that the same command has compiled from the same files is copied from the folder CACHE, which may be deleted.
#     nvcc_once.sh CACHE ROOT BUILD OBJECT KEY -- COMMAND...
# COMMAND writes OBJECT and OBJECT.d. KEY: text that is part of the cache's key, such as the version of nvcc.
set -eu
cache=$1 root=$2 build=$3 object=$4 key=$5
shift 6

hash=$({ # without the paths of the tree and the build folder, which do not affect the object
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
    # Keeps the newest fifty objects. Files are renamed when complete, because two builds may run at the same time.
    find "$cache" -type f -name '*.o*' -printf '%T@ %p\n' | sort -rn | tail -n +101 | cut -d' ' -f2- | xargs -r rm -f
    sed "s|$object|@OBJECT@|g; s|$build|@BUILD@|g" "$object.d" >"$kept.d.$$" && mv "$kept.d.$$" "$kept.d"
    cp "$object" "$kept.$$" && mv "$kept.$$" "$kept"
else
    sed "s|@OBJECT@|$object|g; s|@BUILD@|$build|g" "$kept.d" >"$object.d"
    cp "$kept" "$object"
    touch "$kept" "$kept.d"
fi
