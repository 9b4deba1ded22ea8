#!/bin/sh
# A client runs a command in a pod by a WebSocket on the API server, `pods/exec`. Since Kubernetes
# 1.36 the API server hands such a request on to kubelets that can take it, headers and all. One would
# guess that `Accept: application/json`, which an API client may send with every request, has no
# meaning where the answer is a stream: API servers up to 1.35 took it.
# Seen: a kubelet answers 406 to it, before it looks for the pod. With `*/*`, or without the header,
# it looks (and answers 404 here, because there is no such pod). It answers the same to a request for
# logs, but for these the API server makes a request of its own.
#
# The server of the kubelet v1.37.2 with a host that has no pods, without a cluster.
set -eu
tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
mkdir "$tmp/go"
cat > "$tmp/go/main.go" <<'GO'
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/server"
)

// A kubelet without pods; nothing else of it is asked.
type empty struct{ server.HostInterface }

func (empty) GetPodByName(string, string) (*corev1.Pod, bool) { return nil, false }

func main() {
	klog.SetOutput(os.Stderr)
	klog.LogToStderr(true)
	config := &kubeletconfig.KubeletConfiguration{EnableDebuggingHandlers: true}
	kubelet := server.NewServer(context.Background(), empty{}, nil, nil, nil, nil, config)
	for _, path := range []string{"exec", "attach", "containerLogs"} {
		for _, accept := range []string{"application/json", "*/*", ""} {
			url := "/" + path + "/team/worker/main?command=true&output=1&stdout=1"
			request := httptest.NewRequest(http.MethodGet, url, nil)
			if accept != "" {
				request.Header.Set("Accept", accept)
			}
			answer := httptest.NewRecorder()
			kubelet.ServeHTTP(answer, request)
			fmt.Printf("%s Accept=%q: %d\n", path, accept, answer.Code)
		}
	}
}
GO
(
	cd "$tmp/go"
	go mod init example.invalid/exec
	go mod edit -require=k8s.io/kubernetes@v1.37.2
	# Kubernetes requires its own parts at v0.0.0; they are published as v0.37.2.
	own=$(go mod download -json k8s.io/kubernetes@v1.37.2 | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
	sed -n 's#^[[:space:]]*\(k8s.io/[a-z-]*\) => ./staging.*#\1#p; s#^[[:space:]]*\(k8s.io/[a-z-]*\) v0.0.0$#\1#p' \
		"$own" | sort -u | while read -r part; do go mod edit -replace="$part=$part@v0.37.2"; done
	GOFLAGS=-mod=mod go build -o ../kubelet .
) > "$tmp/log" 2>&1 || { tail -20 "$tmp/log"; exit 1; }
"$tmp/kubelet" > "$tmp/found" 2> "$tmp/log" || { tail -20 "$tmp/log"; exit 1; }
echo "kubelet v1.37.2"
cat "$tmp/found"
diff - "$tmp/found" <<'EXPECTED'
exec Accept="application/json": 406
exec Accept="*/*": 404
exec Accept="": 404
attach Accept="application/json": 406
attach Accept="*/*": 404
attach Accept="": 404
containerLogs Accept="application/json": 406
containerLogs Accept="*/*": 404
containerLogs Accept="": 404
EXPECTED
