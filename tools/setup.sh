#!/bin/sh
# Makes the virtual environment: sh tools/setup.sh VENV [PYTHON]. Quiet unless something goes wrong.
set -u
venv=$1
wanted=${2:-}

fits() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; }

python=
if [ -n "$wanted" ]; then
    fits "$wanted" && python=$wanted
else
    for candidate in python3.12 python3.13 python3.11 python3 python; do
        if fits "$candidate"; then python=$candidate; break; fi
    done
fi
if [ -z "$python" ]; then
    echo "error: Python 3.11, 3.12 or 3.13 is needed, and ${wanted:-python3} is $("${wanted:-python3}" --version 2>&1 | head -n 1); name one: make PYTHON=/path/to/python3.12" >&2
    exit 1
fi

version=$("$python" -c 'import platform; print(platform.python_version())')
echo "Setting up $venv with Python $version: this downloads about 1 GB, once."
log=$(mktemp)
if "$python" -m venv "$venv" >"$log" 2>&1 &&
    "$venv/bin/python" -m pip install --disable-pip-version-check -q -c constraints.txt -e '.[dev]' >>"$log" 2>&1; then
    touch "$venv/.ready"
    rm -f "$log"
else
    tail -n 20 "$log" >&2
    echo "error: $venv could not be set up; the whole log is in $log" >&2
    exit 1
fi
