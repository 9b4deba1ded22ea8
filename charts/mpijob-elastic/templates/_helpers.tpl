{{/* Names are fixed: the admission policies, the certificates and the program know them. */}}

{{- define "mpijob-elastic.check" -}}
{{- if ne .Release.Namespace "mpijob-elastic" }}
{{- fail (printf "the release must be in the namespace mpijob-elastic, not in %s: give --namespace mpijob-elastic --create-namespace" .Release.Namespace) }}
{{- end }}
{{- range .Values.jobsNamespaces }}
{{- if has . (list "kube-system" "kube-public" "kube-node-lease" "mpijob-elastic") }}
{{- fail (printf "jobs in %s are never managed; name another of jobsNamespaces" .) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "mpijob-elastic.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end }}
{{- end }}
{{- end }}

{{/* "true" where it is wanted and served. */}}
{{- define "mpijob-elastic.guard" -}}
{{- if and .Values.guard.enabled (semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version) }}true{{ end }}
{{- end }}

{{- define "mpijob-elastic.flowControl" -}}
{{- if and .Values.flowControl.enabled (semverCompare ">=1.29.0-0" .Capabilities.KubeVersion.Version) }}true{{ end }}
{{- end }}

{{/* Where pods of a component may run, and what pulls its image: called with the component's values and the root. */}}
{{- define "mpijob-elastic.placement" -}}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The part of a hook's namespaceSelector that says whose jobs are managed. */}}
{{- define "mpijob-elastic.jobsNamespaces" -}}
{{- with .Values.jobsNamespaces -}}
{key: kubernetes.io/metadata.name, operator: In, values: {{ toJson . }}}
{{- else -}}
{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, kube-node-lease, kube-public, mpijob-elastic]}
{{- end }}
{{- end }}
