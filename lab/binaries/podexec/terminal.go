package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
	"unsafe"
)

// runOnTerminal runs a process with a terminal of its own, as containers get one for `kubectl exec --tty`: the process
// leads a session that the terminal controls, and all its output is one stream. A client's input goes to the terminal.
func runOnTerminal(process *exec.Cmd, in io.Reader, out io.Writer) error {
	terminal, device, err := openTerminal()
	if err != nil {
		return fmt.Errorf("no terminal: %w", err)
	}
	defer func() { _ = terminal.Close() }()
	process.Stdin, process.Stdout, process.Stderr = device, device, device
	process.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = process.Start()
	_ = device.Close()
	if err != nil {
		return err
	}
	if in != nil {
		go func() { _, _ = io.Copy(terminal, in) }()
	}
	written := make(chan struct{})
	go func() {
		// Once no process has the terminal open any more, reading ends with an error.
		_, _ = io.Copy(out, terminal)
		close(written)
	}()
	err = process.Wait()
	select {
	case <-written:
	case <-time.After(outputDelay):
	}
	return err
}

// openTerminal returns both ends of a new terminal: what a person sees and types, and what a process has (pty(7)).
func openTerminal() (*os.File, *os.File, error) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	var unlocked, number int32
	for request, value := range map[uintptr]*int32{syscall.TIOCSPTLCK: &unlocked, syscall.TIOCGPTN: &number} {
		_, _, failed := syscall.Syscall(syscall.SYS_IOCTL, terminal.Fd(), request, uintptr(unsafe.Pointer(value)))
		if failed != 0 {
			_ = terminal.Close()
			return nil, nil, failed
		}
	}
	device, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		_ = terminal.Close()
		return nil, nil, err
	}
	return terminal, device, nil
}
