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

{{/* The configuration file of a bundled server, if it has one, as values want it. */}}
{{- define "ramify.conf" -}}
{{- $name := first . }}{{ $root := last . }}
{{- $text := $root.Files.Get (printf "files/%s.conf" $name) }}
{{- with (get $root.Values $name).maxmemory }}{{ $text = regexReplaceAll "(?m)^maxmemory .*$" $text (printf "maxmemory %s" .) }}{{ end }}
{{- $text }}
{{- end }}

{{/* Gives a bundled server in place the memory, cores and volume that values say. Its pod is exchanged when its configuration file
changes, as that of kustomize is. */}}
{{- define "ramify.server" -}}
{{- $one := first . }}{{ $own := get (last .).Values (index . 1) }}
{{- with include "ramify.conf" (rest .) }}
{{- $_ := set $one.spec.template.metadata "annotations" (dict "checksum/settings" (sha256sum .)) }}
{{- end }}
{{- with $own.resources }}{{ $_ := set (first $one.spec.template.spec.containers) "resources" . }}{{ end }}
{{- $claim := (first $one.spec.volumeClaimTemplates).spec }}
{{- with $own.storage }}{{ $_ := set $claim.resources.requests "storage" . }}{{ end }}
{{- with $own.storageClass }}{{ $_ := set $claim "storageClassName" . }}{{ end }}
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
