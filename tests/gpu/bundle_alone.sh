#!/bin/bash
# The bundle of scripts/gpu-bundle needs nothing from this machine except the C library: it contains every library of
# its programs, and if this user may chroot, they also run in a root folder with nothing else.
#
#     bundle_alone.sh BUILD-FOLDER
set -euo pipefail
build=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
export GPU_BUNDLE=$build/gpu-bundle
"$root/scripts/gpu-bundle" --from="$build" --checks="$build/gpu-check"

for program in "$GPU_BUNDLE"/bin/* "$GPU_BUNDLE"/python/stoker/*.so; do
    [ -f "$program" ] || continue
    LD_LIBRARY_PATH=$GPU_BUNDLE/lib ldd "$program" | awk '$2 == "=>" {print $3}' | while read -r library; do
        case $library in
        "$GPU_BUNDLE"/lib/*) ;;
        /*/lib[cm].so.6 | /*/libutil.so.1 | /*/libresolv.so.2 | /*/libdl.so.2 | /*/libpthread.so.0 | /*/librt.so.1) ;;
        *) echo "$program: $library is not in the bundle"; exit 1 ;;
        esac
    done
done

alone=$(mktemp -d)
trap 'rm -rf "$alone"' EXIT
loader=$(ldd "$GPU_BUNDLE/bin/loadbench" | awk '/ld-linux/ {print $1}')
mkdir -p "$alone/c" "$alone/tmp" "$alone/bundle"
cp -L "$loader" "$alone/c/"
ldd "$GPU_BUNDLE"/bin/* | awk '$3 ~ /\/lib(c|m|resolv|dl|pthread|rt)\.so/ {print $3}' | sort -u | xargs -I '{}' cp -L '{}' "$alone/c/"
cp -r "$GPU_BUNDLE"/* "$alone/bundle/"
enter=(chroot)
[ "$(id -u)" = 0 ] || enter=(unshare --user --map-root-user chroot)
if ! "${enter[@]}" "$alone" "/c/$(basename "$loader")" --version >/dev/null 2>&1; then
    echo "this user may not change the root: only the lists of libraries were checked"
    exit 0
fi
run() {
    "${enter[@]}" "$alone" "/c/$(basename "$loader")" --library-path /bundle/lib:/c "/bundle/bin/$@"
}
run loadbench --version
TMPDIR=/tmp STOKER_TEST_DEVICE=host run test_loader_on_device
