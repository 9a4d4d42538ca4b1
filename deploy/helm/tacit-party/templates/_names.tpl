{{/* The name of everything that one release makes. */}}
{{- define "tacit-party.name" -}}
{{- $member := .Values.dealer | ternary "dealer" (printf "party-%v" .Values.party) -}}
{{- printf "%s-%s" .Release.Name $member | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{/* Labels by which the pods of this party are found. They never change. */}}
{{- define "tacit-party.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
tacit/party: {{ .Values.dealer | ternary "dealer" (toString .Values.party) | quote }}
{{- end -}}

{{/* All labels. */}}
{{- define "tacit-party.labels" -}}
{{ include "tacit-party.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* The image of the party. */}}
{{- define "tacit-party.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{/* What no container of a party may do. */}}
{{- define "tacit-party.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}
