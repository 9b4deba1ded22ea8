"""The place of each kind in the API: group, version, plural, and their paths.

https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, order=True)
class Resource:
    """A resource of the API; by default in version v1 of the core group, whose name is ""."""

    group: str = ""
    version: str = "v1"
    plural: str
    kind: str

    @property
    def api_version(self) -> str:
        """`v1` or `kubeflow.org/v1`, as manifests write it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """Return the URL path of the collection, of an object, or of the object's subresource."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        scope = f"/namespaces/{namespace}" if namespace else ""
        return "/".join(
            [f"{root}{scope}/{self.plural}", *(part for part in (name, subresource) if part)]
        )


PODS = Resource(plural="pods", kind="Pod")
CONFIG_MAPS = Resource(plural="configmaps", kind="ConfigMap")
SECRETS = Resource(plural="secrets", kind="Secret")
NAMESPACES = Resource(plural="namespaces", kind="Namespace")
DEPLOYMENTS = Resource(group="apps", plural="deployments", kind="Deployment")
NODES = Resource(plural="nodes", kind="Node")
EVENTS = Resource(plural="events", kind="Event")
RESOURCE_QUOTAS = Resource(plural="resourcequotas", kind="ResourceQuota")
LIMIT_RANGES = Resource(plural="limitranges", kind="LimitRange")
BUDGETS = Resource(group="policy", plural="poddisruptionbudgets", kind="PodDisruptionBudget")
NETWORK_POLICIES = Resource(
    group="networking.k8s.io", plural="networkpolicies", kind="NetworkPolicy"
)
SERVICES = Resource(plural="services", kind="Service")
ROLES = Resource(group="rbac.authorization.k8s.io", plural="roles", kind="Role")
ROLE_BINDINGS = Resource(
    group="rbac.authorization.k8s.io", plural="rolebindings", kind="RoleBinding"
)
CLUSTER_ROLES = Resource(
    group="rbac.authorization.k8s.io", plural="clusterroles", kind="ClusterRole"
)
ENDPOINT_SLICES = Resource(group="discovery.k8s.io", plural="endpointslices", kind="EndpointSlice")
LEASES = Resource(group="coordination.k8s.io", plural="leases", kind="Lease")
MPI_JOBS = Resource(group="kubeflow.org", plural="mpijobs", kind="MPIJob")
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    group="apiextensions.k8s.io",
    plural="customresourcedefinitions",
    kind="CustomResourceDefinition",
)
MUTATING_WEBHOOKS = Resource(
    group="admissionregistration.k8s.io",
    plural="mutatingwebhookconfigurations",
    kind="MutatingWebhookConfiguration",
)
VALIDATING_WEBHOOKS = Resource(
    group="admissionregistration.k8s.io",
    plural="validatingwebhookconfigurations",
    kind="ValidatingWebhookConfiguration",
)
