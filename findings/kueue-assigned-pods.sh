#!/bin/sh
# Kueue 0.19.2 with topology-aware scheduling: which pods does it take for its own, so that it does
# not count them on their node a second time, as load of others?
#
# A guess: pods with Kueue's gate `kueue.x-k8s.io/topology`, the annotation of their Workload, and
# the selector of the node that Kueue assigned. Seen: these pods are counted twice. Only the
# annotations `podset-*-topology` count, though they are what a user asks for, and the name alone:
# `podset-unconstrained-topology: "false"` makes a pod Kueue's own, too. A size of slices without
# their topology does not.
#
# pkg/util/tas alone: its answer is what the controller of non-TAS usage goes by. No cluster.
set -eu
tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
cd "$tmp"
GO111MODULE=on go mod download -json sigs.k8s.io/kueue@v0.19.2 >module.json
cp -r "$(sed -n 's/.*"Dir": "\(.*\)".*/\1/p' module.json)" kueue
chmod -R u+w kueue
cd kueue
rm -f pkg/util/tas/*_test.go
cat >pkg/util/tas/finding_test.go <<'GO'
package tas

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFinding(t *testing.T) {
	bound := corev1.PodSpec{
		NodeSelector:    map[string]string{"kubernetes.io/hostname": "a"},
		SchedulingGates: []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/topology"}},
	}
	own := map[string]string{"kueue.x-k8s.io/workload": "w"}
	for _, one := range []struct {
		what        string
		annotations map[string]string
		taken       bool
	}{
		{"gate, Workload and node", own, false},
		{"required", map[string]string{"kueue.x-k8s.io/podset-required-topology": "rack"}, true},
		{"unconstrained: true", map[string]string{"kueue.x-k8s.io/podset-unconstrained-topology": "true"}, true},
		{"unconstrained: false", map[string]string{"kueue.x-k8s.io/podset-unconstrained-topology": "false"}, true},
		{"size of slices alone", map[string]string{"kueue.x-k8s.io/podset-slice-size": "2"}, false},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: one.annotations}, Spec: bound}
		if taken := IsTAS(pod); taken != one.taken {
			t.Errorf("%s: Kueue's own: %v", one.what, taken)
		} else {
			t.Logf("%s: Kueue's own: %v", one.what, taken)
		}
	}
}
GO
echo "Kueue v0.19.2"
go test -count=1 -v -run TestFinding ./pkg/util/tas
