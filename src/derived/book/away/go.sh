#!/bin/sh
# Set up once, in ~/.derived/venv, and carry out the order beside this file; what the machine has of torch stays.
set -eu
cd "$(dirname "$0")"
venv=$(cd ../.. && pwd)/venv

fitting() { # the first Python that the code runs on
  for each in python3 python3.13 python3.12 python3.11; do
    if "$each" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
      command -v "$each"
      return
    fi
  done
  echo "derived: $(hostname) has no Python 3.11 to 3.13 on the path of a plain ssh command" >&2
  exit 1
}

set_up() {
  if [ ! -x "$venv/bin/python" ]; then
    python=$(fitting)
    echo "setting up $venv on $(hostname), with $python"
    rm -rf "$venv.new"
    "$python" -m venv --system-site-packages "$venv.new" ||
      { echo "derived: $python on $(hostname) makes no venv; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
    mv "$venv.new" "$venv"
  fi
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r requirements.txt ||
    { echo "derived: $(hostname) could not install what requirements.txt names; its log says why" >&2; exit 1; }
}

exec 8>"$venv.lock"
flock 8
set_up
exec 8>&-
PYTHONPATH=src${PYTHONPATH:+:$PYTHONPATH} exec "$venv/bin/python" -m derived.book.away.there
