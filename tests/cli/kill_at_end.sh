# kill_at_end.sh: kills a preparation job (kill -9) at each of the last 40 system calls of its main thread, which
# rename the outputs. Running the command again must end with status 0 and the same bytes, and leave only the outputs
# in the folder.
printf 'make: {files: [{path: x.npy, count: 100, shape: [8], dtype: u8, values: bytes}]}\n' >data.yaml
"$LOADBENCH" --make data.yaml >/dev/null || fail "cannot create the data"

traced() { # LeakSanitizer does not work under a tracer
    ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" strace -o trace "$@" </dev/null >trace_log 2>&1
}

# kill_at_end NAME [ARGUMENT...]: tests the job in NAME.yaml, whose outputs go to the folder NAME, with the current
# contents of the folder.
kill_at_end() {
    local name=$1 names killed=0 call nth file
    shift
    mkdir -p "$name" && cp -a "$name" before
    traced "$STOKER" prep "$name.yaml" "$@" || fail "the first run failed: $(cat trace_log)"
    # Numbers the calls by name, such as "rename 3".
    sed -n 's/^\([a-z0-9_]*\)(.*/\1/p' trace | awk '{ print $1, ++count[$1] }' | grep -v exit_group | tail -40 >last
    [ "$(wc -l <last)" -eq 40 ] || fail "traced only $(wc -l <last) system calls, expected 40"
    names=$(ls -A "$name")
    cp -a "$name" whole
    while read -r call nth; do
        rm -rf "$name"
        cp -a before "$name"
        { traced -e "inject=$call:signal=SIGKILL:when=$nth" "$STOKER" prep "$name.yaml" "$@"; } 2>/dev/null
        [ $? -eq 0 ] || killed=$((killed + 1))
        run "$STOKER" prep "$name.yaml" "$@" </dev/null
        code 0
        [ "$(ls -A "$name")" = "$names" ] || fail "killed at $call $nth: found $(ls -A "$name"), expected $names"
        for file in $names; do
            case $file in
            *.manifest.json) ;; # contains a time
            *) cmp "$name/$file" "whole/$file" || fail "killed at $call $nth: $file differs" ;;
            esac
        done
    done <last
    [ "$killed" -gt 20 ] || fail "killed only $killed times"
    rm -rf before whole
}
