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

{{/* "true" if the gateway itself speaks TLS. */}}
{{- define "voicegw.tls" -}}
{{- if or .Values.tls.secretName (.Values.config.tls | default dict).certificates }}true{{ end }}
{{- end }}

{{/* The port of the metrics' own address; empty without one, or if no other machine reaches it. */}}
{{- define "voicegw.metricsPort" -}}
{{- $listen := (.Values.config.metrics | default dict).listen | default "" }}
{{- if and $listen (not (regexMatch "^(127\\.|localhost:|\\[::1\\])" $listen)) }}{{ regexFind "[0-9]+$" $listen }}{{ end }}
{{- end }}

{{/* What no schema can say. */}}
{{- define "voicegw.check" -}}
{{- $config := .Values.config }}
{{- $auth := $config.auth | default dict }}
{{- $tls := $config.tls | default dict }}
{{- $monitor := .Values.serviceMonitor }}
{{- $metrics := include "voicegw.metricsPort" . }}
{{- if not (or $auth.keys $auth.jwt $config.insecure .Values.existingSecret .Values.extraEnv) }}
{{- fail "config.auth is missing: the keys or the issuers of tokens that the gateway lets in (voicegw keys new makes a key; docs/authentication.md). Without them it does not start; config.insecure: true lets everyone in" }}
{{- end }}
{{- if and (include "voicegw.several" .) (not ($config.store | default dict).url) }}
{{- fail "more than one replica, or autoscaling, needs config.store.url: the NATS server or cluster that the gateways share" }}
{{- end }}
{{- $cluster := $config.cluster | default dict }}
{{- if and (include "voicegw.several" .) (not (or .Values.existingSecret .Values.extraEnv $cluster.secret $cluster.secret_file)) }}
{{- fail "more than one replica, or autoscaling, needs existingSecret, a Secret with VOICEGW_CLUSTER_SECRET: what the gateways sign their requests with" }}
{{- end }}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) }}
{{- fail "ingress.enabled needs ingress.hosts, the names that clients use" }}
{{- end }}
{{- if gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas) }}
{{- fail "autoscaling.minReplicas is greater than autoscaling.maxReplicas" }}
{{- end }}
{{- if and .Values.tls.secretName $tls.certificates }}
{{- fail "tls.secretName and config.tls.certificates are both set; set one of them" }}
{{- end }}
{{- if $tls.acme }}
{{- fail "config.tls.acme does not work in a pod: the authority cannot reach it before it is ready. Let cert-manager order the certificate and name its Secret in tls.secretName or ingress.tlsSecret" }}
{{- end }}
{{- if has $metrics (list "0" "8080" "8090") }}
{{- fail (printf "config.metrics.listen has the port %s; choose another one, such as 0.0.0.0:9100: the gateway itself uses 8080 and 8090, and 0 is a different port at each start" $metrics) }}
{{- end }}
{{- if $monitor.enabled }}
{{- if $metrics }}
{{- else if ($config.metrics | default dict).listen }}
{{- fail "serviceMonitor.enabled needs a config.metrics.listen that Prometheus can reach, such as 0.0.0.0:9100" }}
{{- else if not (or $monitor.keySecret .Values.existingSecret) }}
{{- fail "serviceMonitor.enabled needs config.metrics.listen, such as 0.0.0.0:9100, or serviceMonitor.keySecret, a Secret with an API key of the gateway that has the scope metrics" }}
{{- else if and (include "voicegw.tls" .) (not $monitor.tlsConfig) }}
{{- fail "serviceMonitor.enabled needs serviceMonitor.tlsConfig, such as {serverName: voice.example.com}, because the gateway speaks TLS; or config.metrics.listen, such as 0.0.0.0:9100" }}
{{- end }}
{{- end }}
{{- end }}

{{/* voicegw.yaml: the chart's settings over those of the values. */}}
{{- define "voicegw.config" -}}
{{- $own := dict "listen" "0.0.0.0:8080" "data_dir" "/data" "drain_timeout" (printf "%ds" (int .Values.drainSeconds)) }}
{{- $config := deepCopy .Values.config }}
{{- if include "voicegw.several" . }}
{{- $_ := set $own "cluster" (dict "listen" "0.0.0.0:8090") }}
{{- else }}
{{- $config = omit $config "cluster" }}
{{- end }}
{{- if .Values.tls.secretName }}
{{- $_ := set $own "tls" (dict "certificates" (list (dict "cert" "/etc/voicegw-tls/tls.crt" "key" "/etc/voicegw-tls/tls.key"))) }}
{{- end }}
{{- $name := include "voicegw.name" . }}
{{- $service := printf "%s.%s" $name .Release.Namespace }}
{{- $hosts := list $name $service (printf "%s.svc" $service) (printf "%s.svc.cluster.local" $service) }}
{{- if include "voicegw.metricsPort" . }}
{{- $hosts = concat $hosts (list (printf "%s-metrics" $name) (printf "%s-metrics.%s" $name .Release.Namespace) (printf "%s-metrics.%s.svc" $name .Release.Namespace)) }}
{{- end }}
{{- if .Values.ingress.enabled }}
{{- $hosts = concat $hosts .Values.ingress.hosts }}
{{- end }}
{{- $more := $config.hosts | default list }}
{{- if kindIs "string" $more }}
{{- $more = regexSplit "[, ]+" (trimAll ", " $more) -1 }}
{{- end }}
{{- $_ := set $own "hosts" (concat $hosts $more | uniq) }}
{{- toYaml (mergeOverwrite $config $own) }}
{{- end }}
