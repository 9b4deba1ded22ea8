// Pause is the main process of each pod's sandbox on the lab's real node: it holds the pod's namespaces and does nothing.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// The kernel then collects the processes that a pod with a shared PID namespace leaves to us.
	signal.Ignore(syscall.SIGCHLD)
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGINT, syscall.SIGTERM)
	<-ended
}
