#!/bin/sh
# Copies kubectl to $TARGET_DIR, then waits until every pod of /etc/mpi/hostfile has been seen Running in $NAMESPACE,
# for ever if need be. Both variables are the operator's; the file is read once.
set -eu

# In two steps, so that nobody finds half a kubectl.
cp /bin/kubectl "$TARGET_DIR/.kubectl"
mv "$TARGET_DIR/.kubectl" "$TARGET_DIR/kubectl"

waiting=$(cut -d ' ' -f 1 /etc/mpi/hostfile)
echo "waiting for:" $waiting
while [ -n "$waiting" ]; do
  running=$(kubectl get pods --namespace "$NAMESPACE" --field-selector status.phase=Running --output name) || running=
  left=
  for pod in $waiting; do
    echo "$running" | grep -qxF "pod/$pod" && echo "$pod runs" || left="$left $pod"
  done
  waiting=$left
  [ -z "$waiting" ] || sleep 0.5
done
