#!/bin/bash
# cmake/exports.txt lists exactly the functions that the public headers declare with STK_API.
#
#     exports_declared.sh CC INCLUDE_DIR...
set -eu
cc=$1
shift
include=()
for dir in "$@"; do
    include+=("-I$dir")
done
root=$(cd "$(dirname "$0")/../.." && pwd)
declared=$(for dir in "$@"; do ls "$dir"/stoker/*.h; done | sed 's|.*/stoker/\(.*\)|#include <stoker/\1>|' |
    "$cc" -x c -std=c11 -E -P "${include[@]}" - | tr '\n;' ' \n' |
    sed -nE 's/.*visibility\("default"\)\)\)([^(]*)\(.*/\1/p' | grep -oE '\bstk_[a-z0-9_]+ *$' | tr -d ' ' | LC_ALL=C sort -u)
echo "$(wc -l <<<"$declared") functions"
diff -u --label "public headers" --label cmake/exports.txt <(echo "$declared") "$root/cmake/exports.txt"
