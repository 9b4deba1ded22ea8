//go:build tools

package main

// Keeps in go.mod what the release's own program needs; it is built from here, too.
import _ "github.com/kubeflow/mpi-operator/cmd/mpi-operator.v1"
