#!/bin/sh
# kubectl reads YAML with sigs.k8s.io/yaml, many tools around it with PyYAML. Both are said to follow
# YAML 1.1, so one would guess that what one prints unquoted means the same to the other.
# Seen: it does not, in both directions. What PyYAML prints plain as a text, kubectl takes for a
# number (1e-4, 0o17, 0899) or a boolean (y), and what PyYAML takes for a number of base 60, kubectl
# takes for a text (22:22).
#
# sigs.k8s.io/yaml v1.6.0 and PyYAML 6.0.2, each reads the same scalars.
set -eu
tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
mkdir "$tmp/go"
cat > "$tmp/go/main.go" <<'GO'
package main

import (
	"bufio"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		found, err := yaml.YAMLToJSON([]byte(lines.Text()))
		if err != nil {
			panic(err)
		}
		fmt.Println(string(found))
	}
}
GO
(
	cd "$tmp/go"
	go mod init example.invalid/scalars
	go get sigs.k8s.io/yaml@v1.6.0
	go build -o ../read .
) > "$tmp/log" 2>&1 || { cat "$tmp/log"; exit 1; }
python3 -m venv "$tmp/venv"
"$tmp/venv/bin/pip" install --quiet PyYAML==6.0.2
cat > "$tmp/expected" <<'EXPECTED'
1e-4 0.0001 "1e-4"
0o17 15 "0o17"
0899 899 "0899"
1234e5 123400000 "1234e5"
y true "y"
N false "N"
22:22 "22:22" 1342
yes true true
017 15 15
1.5 1.5 1.5
v1.2.3 "v1.2.3" "v1.2.3"
EXPECTED
cut -d ' ' -f 1 "$tmp/expected" > "$tmp/scalars"
"$tmp/read" < "$tmp/scalars" > "$tmp/kubectl"
"$tmp/venv/bin/python" -c '
import json, sys, yaml
for line in sys.stdin:
    print(json.dumps(yaml.safe_load(line)))
' < "$tmp/scalars" > "$tmp/pyyaml"
paste -d ' ' "$tmp/scalars" "$tmp/kubectl" "$tmp/pyyaml" > "$tmp/found"
echo "scalar, sigs.k8s.io/yaml v1.6.0, PyYAML 6.0.2"
cat "$tmp/found"
diff "$tmp/expected" "$tmp/found"
