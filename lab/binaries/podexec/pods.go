package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
)

// executor finds the sandbox of a pod.
type executor struct {
	pods      corev1.PodsGetter
	sandboxes *sandboxes
}

// sandbox returns the sandbox of a running pod. The pod is looked at twice, before and after the sandbox is made: should
// it end meanwhile, either the second look or the watch ends the sandbox.
func (e *executor) sandbox(ctx context.Context, namespace, name string) (*sandbox, error) {
	pod, err := e.running(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	box, err := e.sandboxes.of(pod.UID, name)
	if err != nil {
		return nil, err
	}
	if again, err := e.running(ctx, namespace, name); err != nil || again.UID != pod.UID {
		e.sandboxes.end(pod.UID)
		return nil, fmt.Errorf("pod %s/%s has ended", namespace, name)
	}
	return box, nil
}

func (e *executor) running(ctx context.Context, namespace, name string) (*v1.Pod, error) {
	pod, err := e.pods.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if pod.Status.Phase != v1.PodRunning {
		return nil, fmt.Errorf("container not found: pod %s/%s is %s", namespace, name, pod.Status.Phase)
	}
	return pod, nil
}

// watchPods calls ended with the UID of each pod that is deleted or whose containers have ended.
func watchPods(ctx context.Context, client corev1.CoreV1Interface, ended func(types.UID)) {
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(client.RESTClient(), "pods", v1.NamespaceAll, fields.Everything()),
		ObjectType:    &v1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			UpdateFunc: func(_, changed any) {
				pod := changed.(*v1.Pod)
				if pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
					ended(pod.UID)
				}
			},
			DeleteFunc: func(deleted any) {
				if unknown, ok := deleted.(cache.DeletedFinalStateUnknown); ok {
					deleted = unknown.Obj
				}
				ended(deleted.(*v1.Pod).UID)
			},
		},
	})
	informer.RunWithContext(ctx)
}
