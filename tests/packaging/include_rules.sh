#!/bin/bash
# Checks which folders include which (docs/internals/architecture.md): src/CMakeLists.txt lists the folders that each
# folder of src/ may use, loadbench and play use the public API and base, and headers of other libraries are included
# only in a few places. It reads every #include, and then compiles: with a folder's own flags, the compiler must not
# find a header of a higher folder.
#
#     include_rules.sh CC BUILD_DIR
set -u
cc=$1 build=$(realpath "$2")
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root" || exit 2
failed=0

declare -A may=(
    [tools/live]="tools/live" [tools/args]="tools/args src/base" [tools/codec]="tools/codec src/io src/io/hdf5 src/io/images src/tensor src/base" [tools/sheet]="tools/sheet src/io src/tensor src/base" [tools/play]="tools/play tools/args tools/stoker src/base"
    [tools/stoker]="tools/stoker tools/args tools/sheet tools/live tools/play src/prep src/pipeline src/order src/plan src/io/formats src/io src/tensor src/base" [examples]="examples"
)
while read -r -a line; do # the folders of the library: the build's own list
    may[src/${line[0]}]="${line[*]/#/src/}"
done <"$build/folders.txt"
# loadbench's folders, from the bottom up: each one may include those before it. Only the program itself may include
# report and make.
rooms="src/base tools/live"
for room in statistics machine measure result; do
    rooms="tools/loadbench/$room $rooms"
    [ $room = result ] && rooms="$rooms tools/codec"
    may[tools/loadbench/$room]=$rooms
done
may[tools/loadbench/show]="tools/loadbench/show $rooms"
may[tools/loadbench/study]="tools/loadbench/study tools/loadbench/show $rooms"
may[tools/loadbench/report]="tools/loadbench/report tools/loadbench/study $rooms"
may[tools/loadbench/make]="tools/loadbench/make ${rooms//tools\/loadbench\/result/}"
may[tools/loadbench]="tools/loadbench tools/loadbench/make tools/loadbench/report tools/loadbench/study tools/loadbench/show $rooms tools/args tools/sheet"
# Headers of other libraries, and patterns of the files that may include them.
declare -A only_in=(
    [hdf5.h]="src/io/hdf5/hdf5_library.h" [cuda.h]="src/gpu/cuda_calls.h" [cuda_runtime_api.h]="src/gpu/cuda_calls.h" [cuda_runtime.h]="src/gpu/*.cu" [yaml.h]="src/base/*"
    [jpeglib.h]="src/io/images/jpeg_library.h tools/codec/codec_jpeg.c" [jerror.h]="src/io/images/jpeg_library.h" [spng.h]="src/io/images/png_*code.c tools/sheet/sheet.c"
    [libdeflate.h]="src/io/* tools/codec/codec_inflate.c" [pcre2.h]="src/prep/finish/token_split.c" [utf8proc.h]="src/prep/finish/token_normalize.c src/prep/finish/added_tokens.c"
    [editline/readline.h]="tools/play/play_prompt.c"
    [jansson.h]="src/base/* src/io/* src/plan/* src/pipeline/* src/prep/* tools/*" [openssl/evp.h]="tools/stoker/*" [Random123/philox.h]="src/base/philox.c"
    [zlib.h]="src/io/*"
    [xxhash.h]="src/base/digest.c src/base/digest_stream.c src/io/sums.c src/io/records/tar_cache.c src/order/order_print.c src/prep/*"
    [pthread.h]="src/base/*" [semaphore.h]="-" [threads.h]="-"
    [sys/mman.h]="src/io/* src/base/* tools/*"
)

say() { echo "$*" >&2; failed=1; }

allowed() { # FILE PATTERN...
    local file=$1 pattern
    shift
    for pattern in "$@"; do
        # shellcheck disable=SC2053
        [[ $file == $pattern ]] && return 0
    done
    return 1
}

count=0
for folder in "${!may[@]}"; do
    for file in "$folder"/*.[ch] "$folder"/*.cu "$folder"/*.cpp; do
        [ -e "$file" ] || continue
        count=$((count + 1))
        while read -r header; do
            case $header in
            */*) say "$file: \"$header\": a path; folders are found by the compiler's flags" ;;
            esac
            found=no
            for from in ${may[$folder]}; do
                [ -e "$from/$header" ] && found=yes
            done
            [ $found = yes ] || say "$file: \"$header\" is in none of: ${may[$folder]}"
        done < <(sed -nE 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"([^"]*)".*/\1/p' "$file")
        while read -r header; do
            set -f # the patterns are matched with names, not expanded to files
            # shellcheck disable=SC2086
            if [ -n "${only_in[$header]:-}" ] && ! allowed "$file" ${only_in[$header]}; then
                say "$file: <$header> belongs in: ${only_in[$header]}"
            fi
            set +f
        done < <(sed -nE 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*<([^>]*)>.*/\1/p' "$file")
    done
done
for header in include/stoker/*.h*; do
    bad=$(sed -nE 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]([^>"]*)[>"].*/\1/p' "$header" |
        grep -vE '^(stoker/.*|stdbool\.h|stddef\.h|stdint\.h)$')
    [ -z "$bad" ] || say "$header includes $bad: the public headers need only themselves and the C library"
done
twice=$(find src tools -name '*.[ch]' -printf '%f\n' | sort | uniq -d)
[ -z "$twice" ] || say "two files have the same name: $twice"

# The include flags of a folder, from the build's list of commands.
flags_of() {
    tr -d '\n' <"$build/compile_commands.json" | sed 's/},/},\n/g' | grep -E "/$1/[a-z0-9_]+\.c\"" | head -1 |
        grep -oE -- '-(iquote|I|isystem) ?[^ "]+' | tr '\n' ' '
}

try() { # FOLDER HEADER: can a file of FOLDER include HEADER?
    # shellcheck disable=SC2046
    echo "#include \"$2\"" | (cd /tmp && $cc -x c -std=c11 -D_GNU_SOURCE -M -o /dev/null $(flags_of "$1") - 2>/dev/null)
}

hides() { # FOLDER HEADER: no file of FOLDER can include HEADER
    [ -n "$(flags_of "$1")" ] || say "no flags are known for $1"
    [ -n "$(find src tools -name "$2")" ] || say "no header is named $2"
    ! try "$1" "$2" || say "$1 can include $2"
}

for pair in base:tensor_internal.h base:reader.h base:order.h tensor:reader.h tensor:order.h io:order.h io:npz.h io/arrays:format.h order:reader.h plan:ring.h pipeline:sink.h prep/sinks:finish.h prep/finish:observe.h prep/stats:core.h; do
    hides "src/${pair%%:*}" "${pair##*:}"
done
for pair in statistics:loadbench_machine.h machine:loadbench_run.h measure:loadbench_result.h result:loadbench_json_parts.h show:loadbench_sweep.h \
    report:loadbench_json_parts.h study:loadbench_report.h study:loadbench_args.h make:loadbench_result.h; do
    hides "tools/loadbench/${pair%%:*}" "${pair##*:}"
done
for pair in base:error.h tensor:error.h io:tensor_internal.h pipeline:reader.h pipeline:order.h pipeline:plan.h prep:core.h; do # allowed includes work
    try "src/${pair%%:*}" "${pair##*:}" || say "src/${pair%%:*} cannot include ${pair##*:}"
done
for pair in machine:loadbench_statistics.h study:loadbench_json_parts.h make:loadbench_config.h; do
    try "tools/loadbench/${pair%%:*}" "${pair##*:}" || say "tools/loadbench/${pair%%:*} cannot include ${pair##*:}"
done
echo "$count files"
exit $failed
