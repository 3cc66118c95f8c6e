# lib.sh: assertions for the .test scripts. `run` keeps a command's exit status in $code, its output in ./out and its
# messages in ./err.
digits=$SOURCE/configs/digits.yaml
quick="--set bench.run_time=0.05s --set bench.ramp=0 --set bench.repeats=1 --set bench.limit=false"
checks=0

fail() {
    echo "FAILED: $*" | tee -a "$failed"
    [ -s err ] && sed 's/^/    err: /' err
    [ -s out ] && head -40 out | sed 's/^/    out: /'
    return 0
}

run() {
    echo "\$ $(basename "$1") ${*:2}"
    "$@" >out 2>err
    code=$?
}

# begin COMMAND...: runs it in the background, as process $pid; the loader writes its steps to ./log. until_log REGEX
# [N] waits for N matching lines, so that tests depend on the state of the run and not on times. finish waits for the
# end, as `run` does.
begin() {
    echo "\$ $(basename "$1") ${*:2} &"
    rm -f log # from an earlier run
    STOKER_DEBUG=ring "$@" >out 2>log &
    pid=$!
}
until_log() {
    checks=$((checks + 1))
    for _ in $(seq 6000); do
        [ "$(grep -Ecs -m "${2:-1}" -- "$1" log)" -ge "${2:-1}" ] && return
        kill -0 $pid 2>/dev/null || break
        sleep 0.01
    done
    [ "$(grep -Ecs -m "${2:-1}" -- "$1" log)" -ge "${2:-1}" ] || fail "the log has fewer than ${2:-1} lines that match: $1"
}
finish() {
    { wait $pid; } 2>/dev/null # bash reports there that a signal ended the process
    code=$?
    grep -v '^stoker: ring: ' log >err
}

# code N: the exit status is N.
code() {
    checks=$((checks + 1))
    [ "$code" -eq "$1" ] || fail "exit status $code, expected $1"
}

# out REGEX, err REGEX: a line of the output or of the messages matches.
out() {
    checks=$((checks + 1))
    grep -Eq -- "$1" out || fail "no line of the output matches: $1"
}
err() {
    checks=$((checks + 1))
    grep -Eq -- "$1" err || fail "no message matches: $1"
}

# no_out, no_err: there is no output, or no message.
no_out() {
    checks=$((checks + 1))
    [ ! -s out ] || fail "expected no output"
}
no_err() {
    checks=$((checks + 1))
    [ ! -s err ] || fail "expected no message"
}

# one_message [PROGRAM]: there is exactly one line of messages, which starts with the program's name.
one_message() {
    checks=$((checks + 1))
    { [ "$(wc -l <err)" -eq 1 ] && grep -q "^${1:-loadbench}: " err; } || fail "expected one message, which starts with ${1:-loadbench}:"
}

# json EXPRESSION...: each Python expression is true; `j` is the output, parsed.
json() {
    checks=$((checks + $#))
    python3 - "$@" 2>>err <<'P' || fail "an expression is false for the JSON (see err)"
import json, sys
with open('out') as f:
    j = json.load(f)
wrong = [e for e in sys.argv[1:] if not eval(e)]
for e in wrong:
    print('false:', e, file=sys.stderr)
sys.exit(1 if wrong else 0)
P
}
