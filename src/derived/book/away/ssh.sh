# Runs on the host, the parcel on its standard input: unpacks it, starts it unless it runs or is done, shows its log until it ends.
set -eu
here=$HOME/.derived/$name
mkdir -p "$here"
cd "$here"
if [ ! -d code ]; then
  fresh=$(mktemp -d code.XXXXXX)
  tar xzf - -C "$fresh"
  mv -T "$fresh" code
fi
(
  flock -n 9 || exit 0
  if [ "$(cat rc 2>/dev/null)" = 0 ]; then exit 0; fi
  rm -f rc
  : >log # now, not when the run begins: what an earlier try said is not shown again
  nohup setsid sh -c 'sh code/go.sh; echo $? >rc.part; mv rc.part rc' >>log 2>&1 </dev/null &
) 9>lock
tail -n +1 -f log &
shown=$!
until [ -f rc ] || flock -n lock true; do sleep 1; done
sleep 1
kill $shown
[ -f rc ] || echo "derived: the run on $(hostname) was stopped before its end; the same command continues"
