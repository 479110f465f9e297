{{- define "voicegw.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "voicegw.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "voicegw.labels" -}}
{{ include "voicegw.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* "true" if several gateways share a store. */}}
{{- define "voicegw.several" -}}
{{- if or (gt (int .Values.replicas) 1) .Values.autoscaling.enabled }}true{{ end }}
{{- end }}

{{/* What no schema can say. */}}
{{- define "voicegw.check" -}}
{{- $store := (.Values.config.store | default dict).url }}
{{- if and (include "voicegw.several" .) (not $store) }}
{{- fail "more than one replica, or autoscaling, needs config.store.url: the NATS server or cluster that the gateways share" }}
{{- end }}
{{- if and (include "voicegw.several" .) (not .Values.existingSecret) }}
{{- fail "more than one replica, or autoscaling, needs existingSecret, a Secret with VOICEGW_CLUSTER_SECRET: what the gateways sign their requests with" }}
{{- end }}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) }}
{{- fail "ingress.enabled needs ingress.hosts, the names that clients use" }}
{{- end }}
{{- if gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas) }}
{{- fail "autoscaling.minReplicas is greater than autoscaling.maxReplicas" }}
{{- end }}
{{- end }}

{{/* voicegw.yaml: the chart's settings over those of the values. */}}
{{- define "voicegw.config" -}}
{{- $own := dict "listen" "0.0.0.0:8080" "data_dir" "/data" "drain_timeout" (printf "%ds" (int .Values.drainSeconds)) }}
{{- if include "voicegw.several" . }}
{{- $_ := set $own "cluster" (dict "listen" "0.0.0.0:8090") }}
{{- end }}
{{- $name := include "voicegw.name" . }}
{{- $hosts := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) }}
{{- if .Values.ingress.enabled }}
{{- $hosts = concat $hosts .Values.ingress.hosts }}
{{- end }}
{{- $_ := set $own "hosts" (concat $hosts (.Values.config.hosts | default list) | uniq) }}
{{- toYaml (mergeOverwrite (deepCopy .Values.config) $own) }}
{{- end }}
