#!/bin/bash
# Checks that every public header compiles by itself and when included twice, as C11 and as C++17, with -pedantic,
# and that C++ code that sets options compiles.
#
#     headers_alone.sh CC CXX INCLUDE_DIR...      77 (skipped) without a C++ compiler
set -u
cc=$1 cxx=$2
shift 2
include=() headers=()
for dir in "$@"; do
    include+=("-I$dir")
    for header in "$dir"/stoker/*.h; do
        headers+=("stoker/$(basename "$header")")
    done
done
strict=(-fsyntax-only -pedantic -Wall -Wextra -Werror -Wundef -Wshadow -Wconversion)
failed=0

compile() { # LANGUAGE-AND-FLAGS... ; the text comes from standard input
    "$@" "${strict[@]}" "${include[@]}" - || failed=1
}

for header in "${headers[@]}"; do
    text="#include <$header>"$'\n'"#include <$header>"
    compile "$cc" -x c -std=c11 <<<"$text"$'\n''extern int not_empty;'
    if [ -n "$cxx" ]; then
        compile "$cxx" -x c++ -std=c++17 -Wold-style-cast <<<"$text"
    fi
done
echo "${#headers[@]} headers"
[ $failed = 0 ] || exit 1
[ -n "$cxx" ] || { echo "no C++ compiler: C++ not tried"; exit 77; }

compile "$cxx" -x c++ -std=c++17 <<'END'
#include <stoker/stoker.h>

stk_status feed(const char *path, stk_loader **loader, stk_error *err)
{
    stk_field_opts field = STK_FIELD_OPTS_INIT;
    stk_loader_opts opts = STK_LOADER_OPTS_INIT;

    field.name = "image";
    field.paths = &path;
    field.path_count = 1;
    field.dtype = STK_F32;
    opts.fields = &field;
    opts.field_count = 1;
    return stk_loader_open(&opts, loader, err);
}
END
exit $failed
