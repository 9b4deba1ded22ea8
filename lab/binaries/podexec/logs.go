package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podLog keeps the lines that a pod's main process and others wrote to its standard output (/proc/1/fd/1), with their times.
type podLog struct {
	mutex sync.Mutex
	lines []logLine
	ended bool
	news  chan struct{}
}

type logLine struct {
	at   time.Time
	text string
}

func (l *podLog) keep(output io.Reader) {
	reader := bufio.NewReader(output)
	for {
		text, err := reader.ReadString('\n')
		l.mutex.Lock()
		if text != "" {
			l.lines = append(l.lines, logLine{time.Now(), text})
		}
		l.ended = err != nil
		close(l.news)
		l.news = make(chan struct{})
		l.mutex.Unlock()
		if err != nil {
			return
		}
	}
}

// after returns the lines from the given one on, whether the log has ended, and what is closed when there are more.
func (l *podLog) after(read int) ([]logLine, bool, <-chan struct{}) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.lines[read:], l.ended, l.news
}

// serveLogs answers as a kubelet does, for the options that clients of the lab use: follow, sinceTime, tailLines; with times.
func (e *executor) serveLogs(w http.ResponseWriter, req *http.Request) {
	namespace, name, query := req.PathValue("namespace"), req.PathValue("pod"), req.URL.Query()
	pod, err := e.pods.Pods(namespace).Get(req.Context(), name, metav1.GetOptions{})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	log := e.sandboxes.log(pod.UID)
	if log == nil {
		if _, err := e.sandbox(req.Context(), namespace, name); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		log = e.sandboxes.log(pod.UID)
	}
	since, _ := time.Parse(time.RFC3339, query.Get("sinceTime"))
	read := 0
	if tail, err := strconv.Atoi(query.Get("tailLines")); err == nil {
		lines, _, _ := log.after(0)
		read = max(0, len(lines)-tail)
	}
	for {
		lines, ended, news := log.after(read)
		for _, line := range lines {
			if !line.at.Before(since) {
				fmt.Fprintf(w, "%s %s", line.at.UTC().Format(time.RFC3339Nano), line.text)
			}
		}
		read += len(lines)
		w.(http.Flusher).Flush()
		if ended || query.Get("follow") != "true" {
			return
		}
		select {
		case <-news:
		case <-req.Context().Done():
			return
		}
	}
}
