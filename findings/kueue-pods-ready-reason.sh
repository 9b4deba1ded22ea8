#!/bin/sh
# Kueue 0.19.2 evicts an admitted Workload whose pods are not ready in time (waitForPodsReady, on by
# default since 0.19, 30 minutes). Who integrates a kind of job from outside sets the condition
# PodsReady of its Workloads.
#
# A guess: any PodsReady that is False starts the clock, as the reason of a condition is for people.
# Seen: without the condition the clock runs, and with the reasons WaitForStart and WaitForRecovery.
# With any other reason Kueue waits for ever.
#
# pkg/controller/core alone, with a clock of the test's own. No cluster.
set -eu
tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
cd "$tmp"
GO111MODULE=on go mod download -json sigs.k8s.io/kueue@v0.19.2 >module.json
cp -r "$(sed -n 's/.*"Dir": "\(.*\)".*/\1/p' module.json)" kueue
chmod -R u+w kueue
cd kueue
rm -f pkg/controller/core/*_test.go
cat >pkg/controller/core/finding_test.go <<'GO'
package core

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func TestFinding(t *testing.T) {
	now := time.Now()
	recovery := time.Minute
	r := &WorkloadReconciler{
		clock:            testingclock.NewFakeClock(now),
		waitForPodsReady: &waitForPodsReadyConfig{timeout: time.Minute, recoveryTimeout: &recovery},
	}
	hourAgo := metav1.NewTime(now.Add(-time.Hour))
	for reason, late := range map[string]bool{
		"":                true,
		"WaitForStart":    true,
		"WaitForRecovery": true,
		"Stopped":         false,
		"ImagePull":       false,
	} {
		wl := &kueue.Workload{}
		wl.Status.Conditions = []metav1.Condition{
			{Type: "Admitted", Status: "True", LastTransitionTime: hourAgo},
		}
		if reason != "" {
			wl.Status.Conditions = append(wl.Status.Conditions, metav1.Condition{
				Type: "PodsReady", Status: "False", Reason: reason, LastTransitionTime: hourAgo,
			})
		}
		cause, _ := r.admittedNotReadyWorkload(wl)
		if (cause != "") != late {
			t.Errorf("PodsReady=False for an hour with reason %q: %q", reason, cause)
		} else {
			t.Logf("PodsReady=False for an hour with reason %q: evicted by %q", reason, cause)
		}
	}
}
GO
echo "Kueue v0.19.2"
go test -count=1 -v -run TestFinding ./pkg/controller/core
