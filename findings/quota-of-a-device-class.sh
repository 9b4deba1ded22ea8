#!/bin/sh
# A ResourceQuota may limit the devices of a DeviceClass, by
# `gpu.example.com.deviceclass.resource.k8s.io/devices`, and a pod may ask for such a device by
# `deviceclass.resource.kubernetes.io/gpu.example.com` in its limits. One would guess that a pod
# beyond that quota is refused, as with every other key of a ResourceQuota.
# Seen: the pod does not count there. It counts for `requests.` and the name of its resource only.
# The class's key counts the ResourceClaim that the scheduler makes once it has found a node, so the
# pod is created, and then stays Pending.
#
# The evaluators of Kubernetes v1.37.2, which its API server uses, without a cluster.
set -eu
tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
mkdir "$tmp/go"
cat > "$tmp/go/main.go" <<'GO'
package main

import (
	"fmt"
	"sort"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/utils/clock"
)

const class = "gpu.example.com"

func show(what string, used corev1.ResourceList, err error) {
	if err != nil {
		panic(err)
	}
	keys := []string{}
	for name, quantity := range used {
		keys = append(keys, fmt.Sprintf("%s=%s", name, quantity.String()))
	}
	sort.Strings(keys)
	for _, key := range keys {
		fmt.Println(what, key)
	}
}

func main() {
	asked := corev1.ResourceList{corev1.ResourceName(resourceapi.ResourceDeviceClassPrefix + class): resource.MustParse("2")}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "worker", Namespace: "team"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name:      "worker",
			Resources: corev1.ResourceRequirements{Limits: asked, Requests: asked},
		}}},
	}
	used, err := core.PodUsageFunc(pod, clock.RealClock{})
	show("pod", used, err)

	// The claim as the scheduler makes it.
	claim := &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "made", Namespace: "team"},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{{
				Name: "container-0-request-0",
				Exactly: &resourceapi.ExactDeviceRequest{
					DeviceClassName: class,
					AllocationMode:  resourceapi.DeviceAllocationModeExactCount,
					Count:           2,
				},
			}},
		}},
	}
	classes := extendedresourcecache.NewExtendedResourceCache(klog.Background())
	used, err = core.NewResourceClaimEvaluator(nil, classes, nil, nil).Usage(claim)
	show("claim", used, err)
}
GO
(
	cd "$tmp/go"
	go mod init example.invalid/quota
	go mod edit -require=k8s.io/kubernetes@v1.37.2
	# Kubernetes requires its own parts at v0.0.0; they are published as v0.37.2.
	own=$(go mod download -json k8s.io/kubernetes@v1.37.2 | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
	sed -n 's#^[[:space:]]*\(k8s.io/[a-z-]*\) => ./staging.*#\1#p; s#^[[:space:]]*\(k8s.io/[a-z-]*\) v0.0.0$#\1#p' \
		"$own" | sort -u | while read -r part; do go mod edit -replace="$part=$part@v0.37.2"; done
	GOFLAGS=-mod=mod go build -o ../quota .
) > "$tmp/log" 2>&1 || { tail -20 "$tmp/log"; exit 1; }
"$tmp/quota" > "$tmp/found"
echo "Kubernetes v1.37.2"
cat "$tmp/found"
diff - "$tmp/found" <<'EXPECTED'
pod count/pods=1
pod pods=1
pod requests.deviceclass.resource.kubernetes.io/gpu.example.com=2
claim count/resourceclaims.resource.k8s.io=1
claim gpu.example.com.deviceclass.resource.k8s.io/devices=2
claim requests.deviceclass.resource.kubernetes.io/gpu.example.com=2
EXPECTED
