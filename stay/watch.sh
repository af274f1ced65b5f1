#!/usr/bin/env bash
# watch.sh SECONDS: wait, or until the stay ends; then bring back all results.
end=$((SECONDS + $1))
while [ $SECONDS -lt $end ] && ! grep -q 'left: end$' /tmp/w/out/log/steps 2>/dev/null; do sleep 1; done
tail -25 /tmp/w/out/log/steps; tail -3 /tmp/w/stay.log
for log in $(ls -t /tmp/w/out/log | head -1); do echo "== $log"; tail -c 600 "/tmp/w/out/log/$log"; done
tar czf "$OUT/run.tgz" -C /tmp/w out; ls -l "$OUT"
