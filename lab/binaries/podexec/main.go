// Podexec serves the kubelet's half of `kubectl exec` and `kubectl logs` for the lab's pretended nodes.
//
// kwok's own exec server reports every failure as exit code 1, shows all processes of the machine to the command, and lets
// anybody on the machine run commands as the lab's user. This one speaks through the kubelet's library (exit codes are true),
// gives each pod a sandbox (see sandbox.go), and only answers holders of a certificate of the lab.
//
// It is to be run as the first process of a PID namespace with a /proc of its own: so all sandboxes end with it.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	protocol "k8s.io/apimachinery/pkg/util/remotecommand"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/kubelet/pkg/cri/streaming/remotecommand"
)

var (
	address    = flag.String("address", "", "host:port to serve on")
	cert       = flag.String("certificate", "", "PEM file of the serving certificate")
	key        = flag.String("key", "", "PEM file of its private key")
	authority  = flag.String("client-authority", "", "PEM file of the CA that clients' certificates are from")
	kubeconfig = flag.String("kubeconfig", "", "kubeconfig that may get, list and watch pods")
)

func main() {
	flag.Parse()
	if err := serve(); err != nil {
		klog.ErrorS(err, "podexec ends")
		os.Exit(1)
	}
}

func serve() error {
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	// client-go's default of 5 requests a second would make every exec wait for the one before.
	config.QPS = -1
	client, err := corev1.NewForConfig(config)
	if err != nil {
		return err
	}
	clients, err := clientAuthentication()
	if err != nil {
		return err
	}
	executor := &executor{pods: client, sandboxes: newSandboxes()}
	go watchPods(context.Background(), client, executor.sandboxes.end)
	routes := http.NewServeMux()
	routes.HandleFunc("/exec/{namespace}/{pod}/{container}", executor.serve)
	routes.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", executor.serveLogs)
	server := &http.Server{Addr: *address, Handler: routes, TLSConfig: clients, ReadHeaderTimeout: 10 * time.Second}
	// HTTP/2 has no upgrades, and both SPDY and WebSocket begin as one.
	server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	return server.ListenAndServeTLS(*cert, *key)
}

func clientAuthentication() (*tls.Config, error) {
	pem, err := os.ReadFile(*authority)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", *authority)
	}
	return &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

func (e *executor) serve(w http.ResponseWriter, req *http.Request) {
	options, err := remotecommand.NewOptions(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	box, err := e.sandbox(req.Context(), req.PathValue("namespace"), req.PathValue("pod"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	remotecommand.ServeExec(w, req, box, "", "", "", req.URL.Query()["command"], options,
		4*time.Hour, protocol.DefaultStreamCreationTimeout, protocol.SupportedStreamingProtocols)
}
