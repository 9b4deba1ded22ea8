package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// A command that leaves a child in the background with its output open is over for kubectl after this time.
const outputDelay = time.Second

// sandboxes holds one sandbox for each pod that anybody has run a command in.
type sandboxes struct {
	mutex sync.Mutex
	byPod map[types.UID]*sandbox
	logs  map[types.UID]*podLog
}

// sandbox is a PID namespace with a /proc of its own, whose first process is the pod's main one: what a command sees in
// /proc is what runs in its pod. Files and network are the machine's.
type sandbox struct {
	pod  string
	main *exec.Cmd
	log  *podLog
}

func newSandboxes() *sandboxes {
	return &sandboxes{byPod: map[types.UID]*sandbox{}, logs: map[types.UID]*podLog{}}
}

// of returns the sandbox of a pod, made now if there is none.
func (s *sandboxes) of(uid types.UID, pod string) (*sandbox, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if box, ok := s.byPod[uid]; ok {
		return box, nil
	}
	box, err := newSandbox(pod)
	if err != nil {
		return nil, fmt.Errorf("no sandbox for pod %s: %w", pod, err)
	}
	s.byPod[uid], s.logs[uid] = box, box.log
	return box, nil
}

// log returns what a pod has written, also after its end; nil if it has never had a sandbox.
func (s *sandboxes) log(uid types.UID) *podLog {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.logs[uid]
}

// end kills all processes of a pod, as the kubelet does when it is deleted.
func (s *sandboxes) end(uid types.UID) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if box, ok := s.byPod[uid]; ok {
		delete(s.byPod, uid)
		_ = box.main.Process.Kill()
		_ = box.main.Wait()
	}
}

func newSandbox(pod string) (*sandbox, error) {
	// mpi-operator's workers run `sleep 365d`.
	main := exec.Command("sh", "-c", "mount -t proc proc /proc && echo ready && exec sleep 365d")
	main.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	main.Env = environment(pod)
	output, err := main.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := main.Start(); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(output)
	if _, err := reader.ReadString('\n'); err != nil {
		return nil, errors.Join(err, main.Wait())
	}
	log := &podLog{news: make(chan struct{})}
	go log.keep(reader)
	return &sandbox{pod: pod, main: main, log: log}, nil
}

// ExecInContainer runs a command in the sandbox and returns when it has ended, with an error that carries its exit code.
// It implements the kubelet's remotecommand.Executor. As in a real pod, a command outlives the client that started it.
func (b *sandbox) ExecInContainer(_ context.Context, _ string, _ types.UID, _ string, command []string,
	in io.Reader, out, errOut io.WriteCloser, tty bool, _ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	enter := []string{fmt.Sprintf("--target=%d", b.main.Process.Pid), "--pid", "--mount", "--"}
	process := exec.Command("nsenter", append(enter, command...)...)
	process.Env, process.Dir = environment(b.pod), "/"
	if tty {
		return withExitCode(runOnTerminal(process, in, out))
	}
	process.Stdout, process.Stderr, process.WaitDelay = out, errOut, outputDelay
	if in != nil {
		stdin, err := process.StdinPipe()
		if err != nil {
			return err
		}
		// Wait does not wait for this copy: a client may keep its end open after the command has ended.
		go func() {
			_, _ = io.Copy(stdin, in)
			_ = stdin.Close()
		}()
	}
	return withExitCode(process.Run())
}

func withExitCode(err error) error {
	var exit *exec.ExitError
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	if !errors.As(err, &exit) {
		return err
	}
	code := exit.ExitCode()
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	return utilexec.CodeExitError{Err: err, Code: code}
}

func environment(pod string) []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "HOSTNAME=" + pod}
}
