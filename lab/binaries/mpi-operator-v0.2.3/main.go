// Mpi-controller runs the unmodified controller of mpi-operator, so that many can run on one machine.
//
// The release's own program listens on port 8080 and holds a lock, and v0.2.3 has no flags for its client's limits. This
// one has neither port nor lock, and v0.3.0's flags for the limits. All other flags are the release's.
package main

import (
	"flag"

	"github.com/kubeflow/mpi-operator/cmd/mpi-operator.v1/app/options"
	clientset "github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned"
	kubeflowscheme "github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned/scheme"
	informers "github.com/kubeflow/mpi-operator/pkg/client/informers/externalversions"
	controllers "github.com/kubeflow/mpi-operator/pkg/controllers/v1"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog"
	"k8s.io/sample-controller/pkg/signals"
)

// As in cmd/mpi-operator.v1/app/server.go of both releases.
const userAgent = "mpi-operator"

func main() {
	klog.InitFlags(nil)
	release := options.NewServerOption()
	release.AddFlags(flag.CommandLine)
	if flag.Lookup("kube-api-qps") == nil {
		flag.Int("kube-api-qps", 0, "Requests a second to each API group; 0: client-go's 5; below 0: no limit.")
		flag.Int("kube-api-burst", 0, "Requests at once to each API group; 0: client-go's 10.")
	}
	flag.Parse()

	// An empty path falls back to KUBECONFIG.
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = release.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		klog.Fatalf("no cluster: %v", err)
	}
	config.QPS, config.Burst = float32(number("kube-api-qps")), number("kube-api-burst")
	// The recorder of Events must know the kind of what they are about.
	if err := kubeflowscheme.AddToScheme(scheme.Scheme); err != nil {
		klog.Fatalf("scheme: %v", err)
	}
	if err := run(rest.AddUserAgent(config, userAgent), release, signals.SetupSignalHandler()); err != nil {
		klog.Fatalf("controller: %v", err)
	}
}

// Number returns the value of a flag.
func number(name string) int {
	return flag.Lookup(name).Value.(flag.Getter).Get().(int)
}

// Run works until it is told to stop.
func run(config *rest.Config, release *options.ServerOption, stop <-chan struct{}) error {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	kubeflow, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	volcano, podGroups, err := newVolcano(config, release.Namespace)
	if err != nil {
		return err
	}
	shared := kubeinformers.NewSharedInformerFactoryWithOptions(kube, 0, kubeinformers.WithNamespace(release.Namespace))
	jobs := informers.NewSharedInformerFactoryWithOptions(kubeflow, 0, informers.WithNamespace(release.Namespace))
	controller := controllers.NewMPIJobController(
		kube,
		kubeflow,
		volcano,
		shared.Core().V1().ConfigMaps(),
		shared.Core().V1().ServiceAccounts(),
		shared.Rbac().V1().Roles(),
		shared.Rbac().V1().RoleBindings(),
		shared.Core().V1().Pods(),
		podGroups.Scheduling().V1beta1().PodGroups(),
		jobs.Kubeflow().V1().MPIJobs(),
		release.KubectlDeliveryImage,
		release.GangSchedulingName)
	shared.Start(stop)
	jobs.Start(stop)
	podGroups.Start(stop)
	return controller.Run(release.Threadiness, stop)
}
