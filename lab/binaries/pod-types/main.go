// Pod-types prints the fields of a pod's spec as this release of k8s.io/api has them: a JSON object, a struct a line.
//
// Each field has its type and, for a list whose items have a key, that key: {"Container": {"env": ["[]EnvVar", "name"]}}.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"reflect"
	"sort"
	"strings"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Types that decode themselves. FieldsV1 is a set of paths of any depth.
var own = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():  "quantity",
	reflect.TypeFor[intstr.IntOrString](): "int-or-string",
	reflect.TypeFor[metav1.Time]():        "time",
	reflect.TypeFor[metav1.FieldsV1]():    "any",
}

// Structs maps the name of a struct to its fields, each with its type and the key of its items.
type structs map[string]map[string][2]string

func main() {
	found := structs{}
	found.name(reflect.TypeFor[core.PodSpec]())
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
	case reflect.Pointer:
		return found.name(of.Elem())
	case reflect.Slice:
		return "[]" + found.name(of.Elem())
	case reflect.Map:
		return "{}" + found.name(of.Elem())
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64:
		return of.Kind().String()
	case reflect.Struct:
		if _, ok := found[of.Name()]; !ok {
			found[of.Name()] = map[string][2]string{}
			found.add(found[of.Name()], of)
		}
		return of.Name()
	}
	log.Fatalf("%s: this kind of type is new", of)
	return ""
}

// Add adds the fields of a struct.
func (found structs) add(fields map[string][2]string, of reflect.Type) {
	for field := range of.Fields() {
		name := strings.Split(field.Tag.Get("json"), ",")[0]
		if name == "" && field.Anonymous {
			found.add(fields, field.Type)
		} else if name != "-" {
			fields[name] = [2]string{found.name(field.Type), field.Tag.Get("patchMergeKey")}
		}
	}
}
