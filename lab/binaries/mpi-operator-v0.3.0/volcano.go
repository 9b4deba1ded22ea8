package main

import (
	"k8s.io/client-go/rest"
	"volcano.sh/apis/pkg/client/clientset/versioned"
	"volcano.sh/apis/pkg/client/informers/externalversions"
)

// NewVolcano returns client and informers of PodGroups; each release takes them from another module.
func newVolcano(config *rest.Config, namespace string) (versioned.Interface, externalversions.SharedInformerFactory, error) {
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	return client, externalversions.NewSharedInformerFactoryWithOptions(client, 0, externalversions.WithNamespace(namespace)), nil
}
