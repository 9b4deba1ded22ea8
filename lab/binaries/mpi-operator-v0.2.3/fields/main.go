// Fields prints the fields and types of an MPIJob as mpi-operator v0.2.3 decodes it: a JSON object, a type a line.
//
// With the argument `decode` it decodes each line of its input, the JSON of an MPIJob, as the operator's client does with
// a list, and prints a line for each: empty where that works, else the error.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"reflect"
	"sort"
	"strings"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v1"
	"github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned/scheme"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Types that decode themselves. Fields is a set of paths of any depth, which no template has.
var own = map[reflect.Type]string{
	reflect.TypeOf(resource.Quantity{}):  "quantity",
	reflect.TypeOf(intstr.IntOrString{}): "int-or-string",
	reflect.TypeOf(metav1.Time{}):        "time",
	reflect.TypeOf(metav1.Fields{}):      "any",
}

// Structs maps the name of a struct to its fields and their types.
type structs map[string]map[string]string

func main() {
	if len(os.Args) > 1 && os.Args[1] == "decode" {
		decode()
		return
	}
	found := structs{}
	found.name(reflect.TypeOf(kubeflow.MPIJob{}))
	var lines []string
	for name, fields := range found {
		text, err := json.Marshal(fields)
		if err != nil {
			log.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%q: %s", name, text))
	}
	sort.Strings(lines)
	fmt.Printf("{\n%s\n}\n", strings.Join(lines, ",\n"))
}

// Name returns the name of a type, and adds the structs in it.
func (found structs) name(of reflect.Type) string {
	if name, ok := own[of]; ok {
		return name
	}
	switch of.Kind() {
	case reflect.Ptr:
		return found.name(of.Elem())
	case reflect.Slice:
		return "[]" + found.name(of.Elem())
	case reflect.Map:
		return "{}" + found.name(of.Elem())
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64:
		return of.Kind().String()
	case reflect.Struct:
		if _, ok := found[of.Name()]; !ok {
			found[of.Name()] = map[string]string{}
			found.add(found[of.Name()], of)
		}
		return of.Name()
	}
	log.Fatalf("%s: this kind of type is new", of)
	return ""
}

// Add adds the fields of a struct.
func (found structs) add(fields map[string]string, of reflect.Type) {
	for index := 0; index < of.NumField(); index++ {
		field := of.Field(index)
		name := strings.Split(field.Tag.Get("json"), ",")[0]
		if name == "" && field.Anonymous {
			found.add(fields, field.Type)
		} else if name != "-" {
			fields[name] = found.name(field.Type)
		}
	}
}

func decode() {
	codecs := scheme.Codecs.WithoutConversion()
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	decoder := codecs.DecoderToVersion(info.Serializer, kubeflow.SchemeGroupVersion)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		list := fmt.Sprintf(`{"apiVersion":"kubeflow.org/v1","kind":"MPIJobList","metadata":{},"items":[%s]}`, lines.Bytes())
		_, _, err := decoder.Decode([]byte(list), nil, &kubeflow.MPIJobList{})
		if err == nil {
			fmt.Println()
		} else {
			fmt.Printf("%.200q\n", err.Error())
		}
	}
}
