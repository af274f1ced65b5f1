#!/usr/bin/env bash
# last.sh TREE: all parts have come; TensorFlow is unpacked and found.
. /tmp/w/variables
bash /tmp/w/setup.sh
cd "/tmp/w/$1"
for framework in tensorflow keras-tensorflow; do PYTHONPATH=/tmp/w/$1/src:$PYTHONPATH python3 -m rnnbench env use $framework /tmp/tf/venv/bin/python; done
touch /tmp/w/ready
cat /tmp/w/out/log/steps
