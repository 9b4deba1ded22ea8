#!/bin/sh
# An operator that lists the few pods of a job live, just after it has written something else (a ConfigMap,
# an Event), would guess that the list takes what a GET of one pod takes: a few ms.
# Seen: the list waits for up to 100 ms, about 45 ms at the median, and a GET does not. The API server answers a
# list without resourceVersion from its watch cache, once the cache has seen the newest revision of etcd.
# Any write raises that revision, but the cache of pods hears only of pods, so it asks etcd for a progress
# notification, every 100 ms. After a write to a pod, or with resourceVersion=0, the list does not wait.
# A list that begins while a pod is being written is set free by that write.
#
# Kubernetes v1.34.4 (kube-apiserver) and etcd v3.6.7, built from their Go modules: some 8 minutes on two cores
# at the first time.
set -eu
tmp=$(mktemp -d)
pids=
trap 'kill $pids 2> /dev/null; wait; chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
kubernetes=v1.34.4 etcd=v3.6.7
export CGO_ENABLED=0 GOFLAGS=-mod=mod
mkdir "$tmp/etcd" "$tmp/kubernetes"
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
	go build -trimpath -buildvcs=false -ldflags='-s -w' -o "$tmp/" k8s.io/kubernetes/cmd/kube-apiserver
} > "$tmp/log" 2>&1 || { tail -20 "$tmp/log"; exit 1; }

openssl genrsa -out "$tmp/key" 2048 2> /dev/null
echo 'token,admin,admin,system:masters' > "$tmp/tokens"
"$tmp/etcd-server" --data-dir "$tmp/data" --unsafe-no-fsync --log-level error \
	--listen-client-urls http://127.0.0.1:22379 --advertise-client-urls http://127.0.0.1:22379 \
	--listen-peer-urls http://127.0.0.1:22380 > "$tmp/etcd.log" 2>&1 &
pids="$!"
"$tmp/kube-apiserver" --etcd-servers=http://127.0.0.1:22379 --secure-port=26443 --bind-address=127.0.0.1 \
	--cert-dir="$tmp/certs" --token-auth-file="$tmp/tokens" --service-cluster-ip-range=10.0.0.0/24 \
	--service-account-issuer=https://example.invalid --service-account-key-file="$tmp/key" \
	--service-account-signing-key-file="$tmp/key" --authorization-mode=RBAC \
	--endpoint-reconciler-type=none --disable-admission-plugins=ServiceAccount > "$tmp/api.log" 2>&1 &
pids="$pids $!"
cat > "$tmp/ask.py" <<'PYTHON'
import http.client, json, ssl, statistics, sys, time

headers = {"Authorization": "Bearer token", "Content-Type": "application/json"}
PODS, MAPS = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/configmaps"


def connected():
    return http.client.HTTPSConnection("127.0.0.1", 26443, context=ssl._create_unverified_context())


def ask(method, path, body=None, kind="application/json"):
    text = json.dumps(body) if body else None
    connection.request(method, path, text, {**headers, "Content-Type": kind})
    answer = connection.getresponse()
    return answer.status, answer.read()


for _ in range(120):
    try:
        connection = connected()
        if ask("GET", "/readyz") == (200, b"ok"):
            break
    except OSError:
        pass
    time.sleep(1)
for number in range(3):
    spec = {"containers": [{"name": "c", "image": "i"}]}
    ask("POST", PODS, {"metadata": {"name": f"p{number}", "labels": {"a": "b"}}, "spec": spec})
ask("POST", MAPS, {"metadata": {"name": "m"}})
time.sleep(5)


def after(written, read):
    """The median in ms of 40 reads, each after a write."""
    took = []
    for turn in range(40):
        merge = "application/merge-patch+json"
        status, _ = ask("PATCH", written, {"metadata": {"annotations": {"t": str(turn)}}}, merge)
        assert status == 200, status
        began = time.monotonic()
        status, _ = ask("GET", read)
        assert status == 200, status
        took.append(1000 * (time.monotonic() - began))
        time.sleep(0.05)
    return statistics.median(took)


LIST = f"{PODS}?labelSelector=a%3Db"
rows = {
    "list after a ConfigMap": after(f"{MAPS}/m", LIST),
    "list with resourceVersion=0 after a ConfigMap": after(f"{MAPS}/m", f"{LIST}&resourceVersion=0"),
    "GET of a pod after a ConfigMap": after(f"{MAPS}/m", f"{PODS}/p1"),
    "list after a pod": after(f"{PODS}/p1", LIST),
}
for what, took in rows.items():
    print(f"{what}: {took:.1f} ms", file=sys.stderr)
    print(f"{what}: {'waits' if took > 20 else 'does not wait'}")
PYTHON
echo "Kubernetes $kubernetes, etcd $etcd"
python3 "$tmp/ask.py" > "$tmp/found"
diff - "$tmp/found" <<'EXPECTED'
list after a ConfigMap: waits
list with resourceVersion=0 after a ConfigMap: does not wait
GET of a pod after a ConfigMap: does not wait
list after a pod: does not wait
EXPECTED
