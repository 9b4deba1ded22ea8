#!/bin/sh
# Since Kubernetes 1.37 every HorizontalPodAutoscaler may have `minReplicas: 0` with an external
# metric. One would guess that such an HPA starts a workload that is at 0 replicas as soon as the
# metric asks for some, whoever has set the 0; KEDA does that.
# Seen: it starts only what it has stopped itself. It notes that in its condition ScaledToZero. At a
# 0 that somebody else has set, it says ScalingDisabled, and the metric is not even read.
#
# The controller of Kubernetes v1.37.2 with clients and a metric in memory, without a cluster.
set -eu
tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
mkdir "$tmp/go"
cat > "$tmp/go/main.go" <<'GO'
package main

import (
	"context"
	"flag"
	"fmt"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	v2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	scalefake "k8s.io/client-go/scale/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

// The value of the metric, and how often it was read.
type queue struct{ value, reads atomic.Int64 }

func (q *queue) GetExternalMetric(string, string, labels.Selector) ([]int64, time.Time, error) {
	q.reads.Add(1)
	return []int64{q.value.Load() * 1000}, time.Now(), nil
}

func (q *queue) GetResourceMetric(context.Context, corev1.ResourceName, string, labels.Selector, string) (metrics.PodMetricsInfo, time.Time, error) {
	panic("not asked for")
}

func (q *queue) GetRawMetric(string, string, labels.Selector, labels.Selector) (metrics.PodMetricsInfo, time.Time, error) {
	panic("not asked for")
}

func (q *queue) GetObjectMetric(string, string, *v2.CrossVersionObjectReference, labels.Selector) (int64, time.Time, error) {
	panic("not asked for")
}

func pointer[T any](value T) *T { return &value }

func try(what string, replicas int64, steps ...int64) {
	hpa := &v2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: "team"},
		Spec: v2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: v2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "train"},
			MinReplicas:    pointer(int32(0)),
			MaxReplicas:    8,
			Metrics: []v2.MetricSpec{{
				Type: v2.ExternalMetricSourceType,
				External: &v2.ExternalMetricSource{
					Metric: v2.MetricIdentifier{Name: "queue"},
					Target: v2.MetricTarget{Type: v2.AverageValueMetricType, AverageValue: pointer(resource.MustParse("1"))},
				},
			}},
			Behavior: &v2.HorizontalPodAutoscalerBehavior{
				ScaleDown: &v2.HPAScalingRules{StabilizationWindowSeconds: pointer(int32(0)), Policies: []v2.HPAScalingPolicy{{Type: v2.PodsScalingPolicy, Value: 8, PeriodSeconds: 1}}, SelectPolicy: pointer(v2.MaxChangePolicySelect)},
				ScaleUp:   &v2.HPAScalingRules{StabilizationWindowSeconds: pointer(int32(0)), Policies: []v2.HPAScalingPolicy{{Type: v2.PodsScalingPolicy, Value: 8, PeriodSeconds: 1}}, SelectPolicy: pointer(v2.MaxChangePolicySelect)},
			},
		},
	}
	client := fake.NewSimpleClientset(hpa)
	var size atomic.Int64
	size.Store(replicas)
	scales := &scalefake.FakeScaleClient{}
	scale := func() *autoscalingv1.Scale {
		count := int32(size.Load())
		return &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: "team"},
			Spec:       autoscalingv1.ScaleSpec{Replicas: count},
			Status:     autoscalingv1.ScaleStatus{Replicas: count, Selector: "app=train"},
		}
	}
	scales.AddReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, scale(), nil
	})
	scales.AddReactor("update", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		size.Store(int64(action.(clienttesting.UpdateAction).GetObject().(*autoscalingv1.Scale).Spec.Replicas))
		return true, scale(), nil
	})
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{appsv1.SchemeGroupVersion})
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	factory := informers.NewSharedInformerFactory(client, 0)
	metric := &queue{}
	controller := podautoscaler.NewHorizontalController(
		ctx, client.CoreV1(), scales, client.AutoscalingV2(), mapper, metric,
		factory.Autoscaling().V2().HorizontalPodAutoscalers(), factory.Core().V1().Pods(),
		200*time.Millisecond, 0, 0.1, time.Minute, time.Second)
	metric.value.Store(steps[0])
	factory.Start(ctx.Done())
	go controller.Run(ctx, 1)
	for _, value := range steps {
		metric.value.Store(value)
		time.Sleep(4 * time.Second)
		found, err := client.AutoscalingV2().HorizontalPodAutoscalers("team").Get(ctx, "train", metav1.GetOptions{})
		if err != nil {
			panic(err)
		}
		said := map[v2.HorizontalPodAutoscalerConditionType]v2.HorizontalPodAutoscalerCondition{}
		for _, condition := range found.Status.Conditions {
			said[condition.Type] = condition
		}
		fmt.Printf("%s: queue=%d replicas=%d read=%v ScalingActive=%s ScaledToZero=%s\n",
			what, value, size.Load(), metric.reads.Load() > 0, said[v2.ScalingActive].Reason, said[v2.ScaledToZero].Status)
	}
}

func main() {
	flags := flag.NewFlagSet("klog", flag.ExitOnError)
	klog.InitFlags(flags)
	flags.Set("logtostderr", "false")
	flags.Set("stderrthreshold", "FATAL")
	try("0 by somebody", 0, 3)
	try("0 by the HPA", 3, 0, 2)
}
GO
(
	cd "$tmp/go"
	go mod init example.invalid/zero
	go mod edit -require=k8s.io/kubernetes@v1.37.2
	# Kubernetes requires its own parts at v0.0.0; they are published as v0.37.2.
	own=$(go mod download -json k8s.io/kubernetes@v1.37.2 | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
	sed -n 's#^[[:space:]]*\(k8s.io/[a-z-]*\) => ./staging.*#\1#p; s#^[[:space:]]*\(k8s.io/[a-z-]*\) v0.0.0$#\1#p' \
		"$own" | sort -u | while read -r part; do go mod edit -replace="$part=$part@v0.37.2"; done
	GOFLAGS=-mod=mod go build -o ../zero .
) > "$tmp/log" 2>&1 || { tail -20 "$tmp/log"; exit 1; }
"$tmp/zero" > "$tmp/found" 2> "$tmp/log"
echo "Kubernetes v1.37.2"
cat "$tmp/found"
diff - "$tmp/found" <<'EXPECTED'
0 by somebody: queue=3 replicas=0 read=false ScalingActive=ScalingDisabled ScaledToZero=
0 by the HPA: queue=0 replicas=0 read=true ScalingActive=ValidMetricFound ScaledToZero=True
0 by the HPA: queue=2 replicas=2 read=true ScalingActive=ValidMetricFound ScaledToZero=False
EXPECTED
