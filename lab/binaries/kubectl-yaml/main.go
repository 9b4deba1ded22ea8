// kubectl-yaml reads texts as kubectl reads a file, and says which JSON kubectl makes of each.
//
// It reads a JSON list of texts from its standard input, and writes a JSON list with an item for each: a list of the JSON of
// its documents, or null if kubectl refuses the text.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// What kubectl gives the decoder: k8s.io/cli-runtime, pkg/resource/visitor.go.
const lookAhead = 4096

func main() {
	var texts []string
	if err := json.NewDecoder(os.Stdin).Decode(&texts); err != nil {
		panic(err)
	}
	results := make([][]json.RawMessage, len(texts))
	for i, text := range texts {
		results[i] = documents(text)
	}
	if err := json.NewEncoder(os.Stdout).Encode(results); err != nil {
		panic(err)
	}
}

func documents(text string) []json.RawMessage {
	found := []json.RawMessage{}
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), lookAhead)
	for {
		var document runtime.RawExtension
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			return nil
		}
		raw := bytes.TrimSpace(document.Raw)
		if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
			continue
		}
		// kubectl decodes the JSON before it sends it: k8s.io/apimachinery, pkg/apis/meta/v1/unstructured.
		var value any
		if err := utiljson.Unmarshal(raw, &value); err != nil {
			return nil
		}
		sent, err := json.Marshal(value)
		if err != nil {
			panic(err)
		}
		found = append(found, sent)
	}
}
