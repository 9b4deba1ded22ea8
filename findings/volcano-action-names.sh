#!/bin/sh
# Volcano 1.15 brings two actions that take from gangs. Its design
# (docs/design/gang-aware-eviction-design.md) calls them gangPreempt and gangReclaim, and has them so
# in the line `actions:` of its example, so one would guess that this line is right.
# Seen: the scheduler knows gangpreempt and gangreclaim, and tells capitals from small letters. The
# line of the design makes the whole configuration an error, and nothing of it is used. (By
# pkg/scheduler/scheduler.go the scheduler then goes on with what it had, the built-in configuration
# at its start, and writes a line into its log.)
#
# volcano.sh/volcano v1.15.1. It uses one constant of its module of types that v1.14.0 of that module
# lacks, and replaces that module by a folder of its own repository, so the constant is added here.
set -eu
tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
mkdir "$tmp/go"
cat > "$tmp/go/main.go" <<'GO'
package main

import (
	"fmt"

	"volcano.sh/volcano/pkg/scheduler"
	_ "volcano.sh/volcano/pkg/scheduler/actions"
)

func main() {
	for _, line := range []string{
		"allocate, backfill, gangPreempt, gangReclaim",
		"allocate, backfill, gangpreempt, gangreclaim",
	} {
		actions, _, _, _, err := scheduler.UnmarshalSchedulerConf("actions: \"" + line + "\"\n")
		fmt.Printf("%s: %d actions, %v\n", line, len(actions), err)
	}
}
GO
(
	cd "$tmp/go"
	export CGO_ENABLED=0 GOFLAGS=-mod=mod
	go mod init example.invalid/actions
	source=$(go mod download -json volcano.sh/volcano@v1.15.1 | sed -n 's/.*"Dir": "\(.*\)",*/\1/p')
	types=$(go mod download -json volcano.sh/apis@v1.14.0 | sed -n 's/.*"Dir": "\(.*\)",*/\1/p')
	cp -r "$types" apis
	chmod -R u+w apis
	cat > apis/pkg/apis/scheduling/v1beta1/gate.go <<-'TYPES'
		package v1beta1

		// As docs/design/scheduling-gates-queue-admission.md has it.
		const QueueAllocationGateKey = GroupName + "/queue-allocation-gate"
	TYPES
	sed -n '/^replace (/,/^)/p' "$source/go.mod" | grep -v volcano.sh >> go.mod
	go mod edit -require volcano.sh/volcano@v1.15.1 -replace volcano.sh/apis=./apis
	go build -trimpath -gcflags=all=-dwarf=false -ldflags='-s -w' -o ../actions .
) > "$tmp/log" 2>&1 || { tail -20 "$tmp/log"; exit 1; }
"$tmp/actions" > "$tmp/found" 2> "$tmp/log"
echo "volcano.sh/volcano v1.15.1"
cat "$tmp/found"
diff - "$tmp/found" <<'EXPECTED'
allocate, backfill, gangPreempt, gangReclaim: 0 actions, failed to find Action  gangPreempt
allocate, backfill, gangpreempt, gangreclaim: 4 actions, <nil>
EXPECTED
