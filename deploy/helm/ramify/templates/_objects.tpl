{{/* The objects of a file of deploy/kubernetes, as {"all": [...]}. */}}
{{- define "ramify.objects" -}}
{{- $all := list }}
{{- range regexSplit "(?m)^---\\n" . -1 }}
{{- $all = append $all (fromYaml .) }}
{{- end }}
{{- dict "all" $all | toYaml }}
{{- end }}

{{/* Adds a patch of a Deployment to it in place, as kustomize does: lists of the container and of volumes are joined. */}}
{{- define "ramify.add" -}}
{{- $one := first . }}{{ $patch := last . | fromYaml }}
{{- $spec := $one.spec.template.spec }}{{ $more := $patch.spec.template.spec }}
{{- $container := first $spec.containers }}{{ $added := first $more.containers }}
{{- range list "env" "envFrom" "volumeMounts" }}
{{- if hasKey $added . }}
{{- $_ := set $container . (concat (get $added .) (default list (index $container .))) }}
{{- end }}
{{- end }}
{{- $_ := set $spec "volumes" (concat (default list $more.volumes) (default list $spec.volumes)) }}
{{- $_ := merge $container $added }}
{{- $_ := merge $spec (omit $more "containers") }}
{{- $_ := merge $one.spec (omit $patch.spec "template") }}
{{- end }}

{{/* Sets the number of threads in the command of a worker. */}}
{{- define "ramify.threads" -}}
{{- $container := first . }}{{ $threads := last . }}
{{- $command := list }}{{ $before := "" }}
{{- range $container.command }}
{{- $command = append $command (ternary (toString $threads) . (eq $before "-c")) }}{{ $before = . }}
{{- end }}
{{- $_ := set $container "command" $command }}
{{- end }}
