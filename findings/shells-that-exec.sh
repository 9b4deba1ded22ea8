#!/bin/sh
# MPI launchers start a rank by `/bin/sh -c "AGENT HOST COMMAND"`, and the agent is often a script.
# One would guess that a shell runs its last command in its own process, as there is nothing to do
# after it, so that a signal to the shell's child reaches the command.
# Seen: bash does so for the text of -c, but not for a script in a file; dash never does. With dash
# such an agent is the shell's child, and the command is the child of that child.
#
# Debian 12 on amd64: dash 0.5.12-2, bash 5.2.15-2+b13.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
(cd "$tmp" && apt-get -o APT::Sandbox::User=root download -qq dash=0.5.12-2 bash=5.2.15-2+b13)
for package in "$tmp"/*.deb; do
	dpkg-deb -x "$package" "$tmp/root"
done
echo 'sleep 2' > "$tmp/agent"

# Print the names of the process that was started and of its child, half a second later.
tree() {
	"$@" &
	sleep 0.5
	child=$(cat "/proc/$!/task/$!/children")
	inner=$(cat "/proc/${child% }/comm" 2> /dev/null || echo none)
	echo "$(basename "$1") $2: $(cat "/proc/$!/comm"), its child: $inner"
	wait
}

for shell in dash bash; do
	program=$(find "$tmp/root" -type f -name "$shell" -perm -u+x)
	tree "$program" -c 'sleep 2'
	tree "$program" "$tmp/agent" | sed 's/ [^ ]*agent:/ FILE:/'
done > "$tmp/found"
cat "$tmp/found"
diff - "$tmp/found" <<'EXPECTED'
dash -c: dash, its child: sleep
dash FILE: dash, its child: sleep
bash -c: sleep, its child: none
bash FILE: bash, its child: sleep
EXPECTED
