#!/bin/sh
# Compile Elastic Horovod for CPUs (PyTorch, Gloo, no MPI) into the folder $1. Run this next to requirements.txt.
set -eu
export HOROVOD_WITH_PYTORCH=1 HOROVOD_WITH_GLOO=1
export HOROVOD_WITHOUT_MPI=1 HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_MXNET=1
# Without isolation, because it must be compiled against the installed PyTorch.
exec python3 -m pip install --verbose --no-deps --no-build-isolation --no-binary horovod --require-hashes \
  --root="$1" --requirement requirements.txt
