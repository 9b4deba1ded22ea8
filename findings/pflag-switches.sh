#!/bin/sh
# The options of Arena v0.15.5, as of kubectl, are read by pflag. Arena's help for `submit etjob` says
# `enable hostNetwork, usage: "--hostNetwork true"`, so one would guess that this sets the option.
# Seen: it does, but pflag takes no second word for a boolean. `true` becomes an argument, and as
# Arena joins its arguments to the job's command, it is the first word of that command. For the same
# reason `--queue no` switches the queue on. `--queue=F` switches it off.
#
# pflag v1.0.10, which Arena v0.15.5 requires; Arena itself is not built here.
set -eu
tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
mkdir "$tmp/go"
cat > "$tmp/go/main.go" <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
)

func main() {
	flags := pflag.NewFlagSet("etjob", pflag.ExitOnError)
	network := flags.Bool("hostNetwork", false, "as Arena defines it: BoolVar")
	queue := flags.Bool("queue", false, "as Arena defines it: BoolVar")
	flags.Parse(os.Args[1:])
	fmt.Printf("hostNetwork=%v queue=%v arguments=%q\n", *network, *queue, flags.Args())
}
GO
(
	cd "$tmp/go"
	go mod init example.invalid/switches
	go get github.com/spf13/pflag@v1.0.10
	go build -o ../switches .
) > "$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
{
	"$tmp/switches" --hostNetwork true "horovodrun train"
	"$tmp/switches" --queue no "horovodrun train"
	"$tmp/switches" --hostNetwork=T --queue=F "horovodrun train"
} > "$tmp/found"
echo "pflag v1.0.10"
cat "$tmp/found"
diff - "$tmp/found" <<'EXPECTED'
hostNetwork=true queue=false arguments=["true" "horovodrun train"]
hostNetwork=false queue=true arguments=["no" "horovodrun train"]
hostNetwork=true queue=false arguments=["horovodrun train"]
EXPECTED
