{{- define "kb.labels" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{- define "kb.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "kb.name" -}}
{{ .root.Release.Name }}-{{ .component }}
{{- end }}

{{- define "kb.image" -}}
image: "{{ .repository }}:{{ .tag }}"
imagePullPolicy: {{ .pullPolicy }}
{{- end }}

{{- define "kb.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "kb.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "kb.pipelineEnv" -}}
- name: KB_PIPELINE_DATABASE_URL
  valueFrom: {secretKeyRef: {name: {{ .Values.secrets.pipeline.name }}, key: {{ .Values.secrets.pipeline.keys.url }}}}
- name: KB_DAGSTER_DATABASE_URL
  valueFrom: {secretKeyRef: {name: {{ .Values.secrets.pipeline.name }}, key: {{ .Values.secrets.pipeline.keys.dagster }}}}
- name: KB_DAGSTER_URL
  valueFrom: {secretKeyRef: {name: {{ .Values.secrets.pipeline.name }}, key: {{ .Values.secrets.pipeline.keys.dagster }}}}
- {name: DAGSTER_EVENT_BATCH_SIZE, value: "50"}
{{- with .Values.blobs.url }}
- {name: KB_BLOB_URL, value: {{ . | quote }}}
{{- end }}
- {name: KB_LANGUAGES, value: {{ .Values.languages | quote }}}
{{- end }}

{{- define "kb.readEnv" -}}
- name: KB_APP_DATABASE_URL
  valueFrom: {secretKeyRef: {name: {{ .Values.secrets.read.name }}, key: {{ .Values.secrets.read.keys.url }}}}
- name: KB_SECRET
  valueFrom: {secretKeyRef: {name: {{ .Values.secrets.read.name }}, key: {{ .Values.secrets.read.keys.secret }}}}
- name: KB_LOG_KEY
  valueFrom: {secretKeyRef: {name: {{ .Values.secrets.read.name }}, key: {{ .Values.secrets.read.keys.logKey }}}}
- {name: KB_PUBLIC_URL, value: {{ .Values.publicUrl | quote }}}
{{- with .Values.blobs.url }}
- {name: KB_BLOB_URL, value: {{ . | quote }}}
{{- end }}
{{- end }}
