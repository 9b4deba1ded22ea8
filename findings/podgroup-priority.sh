#!/bin/sh
# Kubernetes 1.37 schedules pods as a gang if they name a PodGroup (spec.schedulingGroup). The PodGroup's
# field priorityClassName is optional, and preemption already knows the priority of each pod, so one would
# guess that a PodGroup without a class takes its pods as they are, and that a pod which no rule lets
# run is Unschedulable.
# Seen: a PodGroup without a class has priority 0 (or that of the global default class), and the scheduler
# tries no pod of the group whose own priority differs. The pods get PodScheduled=False with the reason
# SchedulerError, not Unschedulable, by which programs look for pods that lack room. Priority is compared by
# value: a class of another name and the same value will do. priorityClassName of a PodGroup cannot
# change, so the way out is another PodGroup.
#
# Kubernetes v1.37.2 (kube-apiserver, kube-scheduler) and etcd v3.6.7, built from their Go modules: about
# 10 minutes on two cores at the first time.
set -eu
tmp=$(mktemp -d)
pids=
trap 'kill $pids 2> /dev/null; wait; chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
kubernetes=v1.37.2 etcd=v3.6.7
export CGO_ENABLED=0 GOFLAGS=-mod=mod
mkdir "$tmp/etcd" "$tmp/kubernetes"
build() {
	go build -trimpath -buildvcs=false -gcflags=all=-dwarf=false -ldflags='-s -w' -o "$tmp/" "$@"
}
{
	cd "$tmp/etcd"
	go mod init example.invalid/etcd
	go get "go.etcd.io/etcd/server/v3@$etcd"
	go build -trimpath -ldflags='-s -w' -o "$tmp/etcd-server" go.etcd.io/etcd/server/v3
	cd "$tmp/kubernetes"
	# Kubernetes requires its staging modules at v0.0.0, which only its own source tree has.
	released=$(go mod download -json "k8s.io/kubernetes@$kubernetes" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
	{
		echo module example.invalid/kubernetes
		sed -n 's/^go /go /p' "$released"
		echo "require k8s.io/kubernetes $kubernetes"
		sed -n "s/^[[:space:]]*\(k8s.io[^ ]*\) v0.0.0\$/replace \1 => \1 v0${kubernetes#v1}/p" "$released"
	} > go.mod
	build k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-scheduler
} > "$tmp/log" 2>&1 || { tail -20 "$tmp/log"; exit 1; }

openssl genrsa -out "$tmp/key" 2048 2> /dev/null
echo 'token,admin,admin,system:masters' > "$tmp/tokens"
api=https://127.0.0.1:26443
ask() { # METHOD PATH [BODY]
	curl -sk -H 'Authorization: Bearer token' -H 'Content-Type: application/json' -X "$1" "$api$2" -d "${3-}"
}
"$tmp/etcd-server" --data-dir "$tmp/data" --unsafe-no-fsync --log-level error \
	--listen-client-urls http://127.0.0.1:22379 --advertise-client-urls http://127.0.0.1:22379 \
	--listen-peer-urls http://127.0.0.1:22380 > "$tmp/etcd.log" 2>&1 &
pids="$!"
"$tmp/kube-apiserver" --etcd-servers=http://127.0.0.1:22379 --secure-port=26443 --bind-address=127.0.0.1 \
	--cert-dir="$tmp/certs" --token-auth-file="$tmp/tokens" --service-cluster-ip-range=10.0.0.0/24 \
	--service-account-issuer=https://example.invalid --service-account-key-file="$tmp/key" \
	--service-account-signing-key-file="$tmp/key" --authorization-mode=RBAC \
	--endpoint-reconciler-type=none --disable-admission-plugins=ServiceAccount \
	--feature-gates=GenericWorkload=true --runtime-config=scheduling.k8s.io/v1beta1=true > "$tmp/api.log" 2>&1 &
pids="$pids $!"
cat > "$tmp/kubeconfig" <<CONFIG
{"apiVersion": "v1", "kind": "Config", "current-context": "c",
 "clusters": [{"name": "c", "cluster": {"server": "$api", "insecure-skip-tls-verify": true}}],
 "users": [{"name": "c", "user": {"token": "token"}}],
 "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]}
CONFIG
for _ in $(seq 120); do [ "$(ask GET /readyz)" = ok ] && break; sleep 1; done
"$tmp/kube-scheduler" --kubeconfig="$tmp/kubeconfig" --leader-elect=false --secure-port=0 \
	--feature-gates=GenericWorkload=true > "$tmp/scheduler.log" 2>&1 &
pids="$pids $!"

ask POST /api/v1/nodes '{"metadata": {"name": "n"}}' > /dev/null
curl -sk -H 'Authorization: Bearer token' -H 'Content-Type: application/merge-patch+json' -X PATCH \
	"$api/api/v1/nodes/n/status" -d '{"status": {"capacity": {"cpu": "8", "memory": "8Gi", "pods": "20"},
	"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "20"}}}' > /dev/null
for class in low same; do
	ask POST /apis/scheduling.k8s.io/v1/priorityclasses "{\"metadata\": {\"name\": \"$class\"}, \"value\": 10}" > /dev/null
done
gang() { # NAME, the PodGroup's class: two pods of the class low
	ask POST /apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups "{\"metadata\": {\"name\": \"$1\"},
		\"spec\": {\"schedulingPolicy\": {\"gang\": {\"minCount\": 2}}, \"priorityClassName\": \"$2\"}}" > /dev/null
	for pod in 0 1; do
		ask POST /api/v1/namespaces/default/pods "{\"metadata\": {\"name\": \"$1-$pod\"}, \"spec\": {
			\"schedulingGroup\": {\"podGroupName\": \"$1\"}, \"priorityClassName\": \"low\",
			\"tolerations\": [{\"operator\": \"Exists\"}], \"containers\": [{\"name\": \"c\", \"image\": \"i\"}]}}" > /dev/null
	done
}
gang without "" && gang low low && gang same same
sleep 8
for name in without low same; do
	ask GET "/api/v1/namespaces/default/pods/$name-1" | python3 -c '
import json, sys
pod = json.load(sys.stdin)
[scheduled] = [one for one in pod["status"]["conditions"] if one["type"] == "PodScheduled"]
print(pod["metadata"]["name"], "priority", pod["spec"]["priority"], "node", pod["spec"].get("nodeName"),
      scheduled["status"], scheduled.get("reason", ""), scheduled.get("message", ""))'
done > "$tmp/found"
echo "Kubernetes $kubernetes, etcd $etcd"
cat "$tmp/found"
diff - "$tmp/found" <<'EXPECTED'
without-1 priority 10 node None False SchedulerError all pods in a single pod group should have the same priority as the pod group's priority, got 10 and 0
low-1 priority 10 node n True  
same-1 priority 10 node n True  
EXPECTED
