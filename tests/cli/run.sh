#!/bin/bash
# Runs one .test script in an empty folder, which it removes afterwards. LOADBENCH, STOKER and SOURCE come from the
# environment.
set -u
here=$(cd "$(dirname "$0")" && pwd)
script=$(realpath "$1")
folder=$(mktemp -d "${TMPDIR:-/tmp}/stoker_cli.XXXXXX") || exit 1
failed=$folder.failed
trap 'rm -rf "$folder" "$failed"' EXIT
cd "$folder" || exit 1
unset STOKER_DEBUG STOKER_ISA STOKER_BENCH_DATA NO_COLOR
. "$here/lib.sh"
. "$script"
[ ! -e "$failed" ] && [ "$checks" -gt 0 ]
