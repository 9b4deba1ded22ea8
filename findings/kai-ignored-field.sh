#!/bin/sh
# mpi-operator v0.2.3 knows `spec.runPolicy.schedulingPolicy.minAvailable` of an MPIJob and never
# reads it, so one would guess that the field has no effect, and that a scheduler which is told
# nothing else takes each pod of the job alone.
# Seen: the podgrouper of KAI reads the MPIJob itself. Without the field the gang is
# the launcher and all workers, however the job is annotated; with it the gang is that number. (KAI's
# scheduler deletes all pods of a gang of which fewer have run for 60 s.) A job that names no number
# of workers gets no gang at all.
#
# KAI Scheduler v0.12.0, the podgrouper's library; neither scheduler nor operator runs here.
set -eu
tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
mkdir "$tmp/go"
cat > "$tmp/go/main.go" <<'GO'
package main

import (
	"fmt"

	"github.com/NVIDIA/KAI-scheduler/pkg/podgrouper/podgrouper/plugins/defaultgrouper"
	"github.com/NVIDIA/KAI-scheduler/pkg/podgrouper/podgrouper/plugins/kubeflow"
	"github.com/NVIDIA/KAI-scheduler/pkg/podgrouper/podgrouper/plugins/kubeflow/mpi"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type object = map[string]interface{}

func show(what string, runPolicy, worker object) {
	job := &unstructured.Unstructured{Object: object{
		"apiVersion": "kubeflow.org/v1",
		"kind":       "MPIJob",
		"metadata":   object{"name": "train", "annotations": object{"example.invalid/least": "2"}},
		"spec": object{
			"runPolicy": runPolicy,
			"mpiReplicaSpecs": object{
				"Launcher": object{"replicas": int64(1)},
				"Worker":   worker,
			},
		},
	}}
	common := defaultgrouper.NewDefaultGrouper("kai.scheduler/queue", "kai.scheduler/node-pool", nil)
	grouper := mpi.NewMpiGrouper(nil, kubeflow.NewKubeflowDistributedGrouper(common))
	found, err := grouper.GetPodGroupMetadata(job, &v1.Pod{})
	if err != nil {
		fmt.Printf("%s: no gang\n", what)
		return
	}
	fmt.Printf("%s: minMember %d\n", what, found.MinAvailable)
}

func main() {
	four := object{"replicas": int64(4)}
	show("nothing said", object{}, four)
	show("minAvailable 3", object{"schedulingPolicy": object{"minAvailable": int64(3)}}, four)
	show("no number of workers", object{}, object{})
}
GO
(
	cd "$tmp/go"
	go mod init example.invalid/gang
	go get github.com/NVIDIA/KAI-scheduler@v0.12.0
	go mod tidy
	go build -o ../gang .
) > "$tmp/log" 2>&1 || { tail -20 "$tmp/log"; exit 1; }
"$tmp/gang" > "$tmp/found"
echo "KAI Scheduler v0.12.0"
cat "$tmp/found"
diff - "$tmp/found" <<'EXPECTED'
nothing said: minMember 5
minAvailable 3: minMember 3
no number of workers: no gang
EXPECTED
