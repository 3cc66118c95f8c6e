#!/bin/bash
# Installs into a prefix in the build folder and uses only the installed files. Checks the links of the documentation
# and every config. Builds the examples with find_package, with find_package and the static library, and with
# pkg-config, and runs them: training gives the same numbers for 1, 2 and 8 workers and without workers, and about 96 %
# accuracy; a small network also reaches that on a device.
#
#     install_examples.sh BUILD_DIR CC SANITIZE
set -eu
build=$(realpath "$1") cc=$2 sanitize=${3:-}
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$build/tests/packaging
prefix=$work/prefix doc=$work/prefix/share/doc/stoker
flags=(-DCMAKE_C_COMPILER="$cc" -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_C_FLAGS=-Wall -Wextra -Wconversion -Werror ${sanitize:+-fsanitize=$sanitize}")
digits=("$doc/tests/data/digits_images.npy" "$doc/tests/data/digits_labels.npy")

rm -rf "$work"
mkdir -p "$work"
cmake --install "$build" --prefix "$prefix" >"$work/install.log"
cmp "$root/LICENSE" "$doc/LICENSE"
python3 "$root/tests/packaging/docs_links.py" "$doc"
"$prefix/bin/loadbench" "$doc/configs/digits.yaml" --set bench.run_time=100ms >"$work/digits.txt"
grep -q '1797 samples' "$work/digits.txt"
"$prefix/bin/loadbench" "$doc/configs/synthetic.yaml" --set bench.run_time=100ms >"$work/synthetic.txt"
sed 's/count: [0-9]*/count: 2/' "$doc/configs/images-data.yaml" >"$doc/configs/few-data.yaml"
"$prefix/bin/loadbench" --make "$doc/configs/few-data.yaml" >"$work/make.txt"
"$prefix/bin/loadbench" "$doc/configs/images.yaml" --set bench.run_time=100ms --set loader.batch_size=2 >"$work/images.txt"
grep -q '2 samples' "$work/images.txt"
for config in "$doc"/configs/*.yaml; do
    case $config in *-data.yaml) continue ;; esac
    STOKER_BENCH_DATA=/nowhere "$prefix/bin/loadbench" "$config" --parse-only
done
for job in "$doc"/configs/prep/*.yaml; do
    out=$(sed -n 's/^#.* OUT=\([^ ]*\) .*/\1/p' "$job" | head -1) # the output in the job's example
    IN=/in OUT=${out:-/out.tar} VOCABULARY=/vocabulary "$prefix/bin/stoker" prep "$job" --show-config >"$work/job.txt"
done
if command -v scdoc >/dev/null; then
    grep -q '^\.TH "loadbench" "1"' "$prefix/share/man/man1/loadbench.1"
fi

cat >"$work/digits.yaml" <<END
dataset: {fields: {image: {path: ${digits[0]}, transforms: [scale: 0.0625]}}}
loader: {batch_size: 64, order: random}
END

try() { # NAME OPTION...
    local name=$1 dir=$work/$1
    shift
    echo "== $name"
    env PKG_CONFIG_PATH="$(find "$prefix" -type d -name pkgconfig)" \
        cmake -S "$doc/examples" -B "$dir" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" "${flags[@]}" "$@" >"$dir.log" 2>&1 &&
        cmake --build "$dir" >>"$dir.log" 2>&1 || { cat "$dir.log"; exit 1; }
    "$dir/first_batch" "$work/digits.yaml"
    "$dir/tokens" "$root/tests/oracle/tokens/llmc_gpt2.bin" "$root/tests/oracle/tokens/llmc_gpt2.bin" | tee "$dir/tokens.txt"
    grep -q '^epoch 1: 28 windows of 64, ' "$dir/tokens.txt"
    [ "$("$dir/own_transform" | grep -c '^epoch [01] begins with ')" -eq 2 ]
    "$dir/device_copies"
    "$dir/train_digits" "${digits[@]}" 2 >"$dir/workers2.txt"
    cmp "$dir/workers2.txt" "$work/find_package/workers2.txt"
}

try find_package
try static -DSTOKER_USE_STATIC=ON
try pkgconfig -DSTOKER_USE_PKGCONFIG=ON

for workers in -1 1 8; do
    "$work/find_package/train_digits" "${digits[@]}" $workers >"$work/workers$workers.txt"
    cmp "$work/workers$workers.txt" "$work/find_package/workers2.txt"
done
tail -2 "$work/find_package/workers2.txt"
awk '/^epoch 30/ {accuracy = $6} END {exit !(accuracy >= 95.5)}' "$work/find_package/workers2.txt"

# On a device: the host device stands in for a GPU. Without a GPU, cuda:0 fails with one line.
"$work/find_package/train_digits_gpu" host "${digits[@]}" >"$work/gpu.txt"
tail -2 "$work/gpu.txt"
awk '/^epoch 20/ {accuracy = $6} END {exit !(accuracy >= 95.5)}' "$work/gpu.txt"
if ! ls /dev/nvidia[0-9]* >/dev/null 2>&1; then
    status=0
    "$work/find_package/train_digits_gpu" cuda:0 "${digits[@]}" 2>"$work/refusal.txt" || status=$?
    [ $status = 1 ] && [ "$(wc -l <"$work/refusal.txt")" = 1 ] && grep -q cuda "$work/refusal.txt"
fi

# Wrong arguments fail with one line and exit status 1.
status=0
"$work/find_package/train_digits" "$root/CMakeLists.txt" "${digits[1]}" 2>"$work/refusal.txt" || status=$?
[ $status = 1 ] && [ "$(wc -l <"$work/refusal.txt")" = 1 ] && grep -q CMakeLists.txt "$work/refusal.txt"
