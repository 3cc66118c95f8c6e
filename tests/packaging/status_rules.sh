#!/bin/bash
# A status is compared with STK_OK and never used as a truth value (docs/internals/style.md, Errors): not `!status`,
# `if (status)`, `status ? a : b`, or `if (call(..., err))`. Statuses are recognized by their name, calls by `err` as
# their last argument.
set -u
cd "$(dirname "$0")/../.." || exit 2
status='(\w+(\[\w+\])?(->|\.))*status\b' last='(, |\()&?err\)'
rules="!\(?$status(?! *\()"                                                  # !status
rules+="|\b(if|while) \($status\)"                                           # if (status)
rules+="|(&&|\|\||(?<![=!<>])=|return|,|\() ?$status (&&|\|\||\?)"           # x = status ? ...
rules+="|(&&|\|\|) $status *(\)|;|\?)"                                       # ready && status
rules+="|\b(if|while) \(.*$last\)( \{)?\$|$last (&&|\|\||\?)"                # if (call(err))
rules+="|![\w>.-]+\([^()]*(\([^()]*\)[^()]*)*$last"                          # !call(err)

for bad in 'if (!status)' '    if (!p->status && ready)' 'if (status)' 'while (w->status)' 'return status ? status : next(err);' \
    'if (ready && status)' '(status || x)' 'if (status && x)' 'if (open_it(path, err))' 'if (open_it(path, err)) {' \
    'return open_it(path, err) || other;' 'ok = !open_it(path, err);'; do
    grep -qP -- "$rules" <<<"$bad" || { echo "the rules do not report: $bad" >&2; exit 2; }
done
for good in 'if (status != STK_OK)' 'return status == STK_OK ? next(err) : status;' 'if ((status = open_it(path, err)) != STK_OK ||' \
    'return !there ? open_it(path, err) : STK_OK;' 'if (!p || p->status == STK_OK)' 'if (a && status == STK_OK)' \
    'return write_it(to, &err, sizeof err) && more;'; do
    grep -qP -- "$rules" <<<"$good" && { echo "the rules report: $good" >&2; exit 2; }
done
if grep -rnP --include='*.[ch]' --include='*.cu*' -- "$rules" src tools examples include >&2; then
    echo "compare with STK_OK" >&2
    exit 1
fi
