#!/bin/bash
# Runs one .test script in an empty folder that goes afterwards. LOADBENCH, STOKER and SOURCE come from the environment.
set -u
here=$(cd "$(dirname "$0")" && pwd)
script=$(realpath "$1")
folder=$(mktemp -d "${TMPDIR:-/tmp}/stoker_cli.XXXXXX") || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
unset STOKER_DEBUG STOKER_ISA STOKER_BENCH_DATA NO_COLOR
. "$here/lib.sh"
. "$script"
[ "$failures" -eq 0 ] && [ "$checks" -gt 0 ]
