#!/bin/bash
# Creates the three environments of run_all.sh, FOLDER/torch, FOLDER/dali and FOLDER/ffcv, with the pinned versions.
#
# usage: setup.sh FOLDER [torch] [dali] [ffcv]      all three by default
#
# ffcv is built from source and needs gcc, pkg-config, libturbojpeg0-dev and libopencv-dev. SPDL's image decoder needs
# libavdevice59 libavfilter8 libavformat59.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
folder=$1
shift
for name in "${@:-torch dali ffcv}"; do
    for one in $name; do
        python3 -m venv "$folder/$one"
        "$folder/$one/bin/pip" install --quiet -r "$here/requirements-$one.txt"
        [ "$one" != ffcv ] || "$folder/$one/bin/pip" install --quiet --no-build-isolation --no-deps ffcv==1.0.2
    done
done
echo "PY_TORCH=$folder/torch/bin/python PY_DALI=$folder/dali/bin/python PY_FFCV=$folder/ffcv/bin/python"
