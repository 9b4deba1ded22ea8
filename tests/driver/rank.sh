#!/bin/sh
# A rank that counts steps, and saves its count on the signal. It notes what it does in $NOTES, a line
# each: its start, its rank, the number of ranks, what it does, and the step.
# $HEARS: nothing (no handler), deaf (ignores the signal) or saves. $STEPS: how many it counts.
# $CODE: the exit code after that.
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK} ranks=${OMPI_COMM_WORLD_SIZE:-$PMI_SIZE}
start=${MPIJOB_ELASTIC_RUN%.}
note() { echo "${start##*.} $rank $ranks $1 $step" >> "$NOTES"; }

step=0
[ -e "$NOTES.saved" ] && read -r step < "$NOTES.saved"
asked=
case $HEARS in
  saves) trap 'asked=yes' USR1 ;;
  deaf) trap '' USR1 ;;
esac
note starts
while [ "$step" -lt "$STEPS" ]; do
  sleep 0.1
  step=$((step + 1))
  if [ "$asked" ]; then
    if [ "$rank" = 0 ]; then
      echo "$step" > "$NOTES.new"
      mv "$NOTES.new" "$NOTES.saved"
    fi
    note saved
    exit 0
  fi
done
note ends
exit "$CODE"
