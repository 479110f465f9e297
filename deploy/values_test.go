package deploy

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
)

// base is the beginning of each case of a single value.
const base = "{existingSecret: keys, config: {insecure: true}}"

// documented has for each value of values.schema.json a setting other than its default, and the resulting text in the
// manifests.
var documented = map[string]struct{ set, want string }{
	"replicas":                    {"{replicas: 2, config: {store: {url: 'nats://nats:4222'}}}", "replicas: 2\n"},
	"image.repository":            {"{image: {repository: registry.example.com/v}}", "registry.example.com/v:"},
	"image.tag":                   {"{image: {tag: '1.0'}}", "voicegw:1.0"},
	"image.pullPolicy":            {"{image: {pullPolicy: Always}}", "imagePullPolicy: Always"},
	"imagePullSecrets":            {"{imagePullSecrets: [{name: pull}]}", "name: pull"},
	"config":                      {"{config: {agent: {instructions: \"Two\\n  lines: {{ .Values }}\\n\"}}}", "lines: {{ .Values }}"},
	"config.auth":                 {"{config: {auth: " + auth + "}}", "issuer: https://login.example.com"},
	"config.cluster":              {"{replicas: 2, existingSecret: '', config: {cluster: {secret: 0123456789abcdef0123456789abcdef}, store: {url: 'nats://nats:4222'}}}", "secret: 0123456789abcdef0123456789abcdef"},
	"config.store":                {"{config: {store: {url: 'nats://nats:4222'}}}", "nats://nats:4222"},
	"config.hosts":                {"{config: {hosts: 'a.example.com, b.example.com'}}", "- b.example.com"},
	"config.metrics.listen":       {"{config: {metrics: {listen: '[::]:9100'}}}", "containerPort: 9100"},
	"config.tls":                  {"{config: {tls: {certificates: [{cert: /c/tls.crt, key: /c/tls.key}]}}, extraVolumes: [{name: c, secret: {secretName: cert}}], extraVolumeMounts: [{name: c, mountPath: /c}]}", "scheme: HTTPS"},
	"existingSecret":              {"{existingSecret: voicegw}", `name: "voicegw"`},
	"extraEnv":                    {"{extraEnv: [{name: VOICEGW_LOG_LEVEL, value: warn}]}", "VOICEGW_LOG_LEVEL"},
	"extraVolumes":                {"{extraVolumes: [{name: agents, configMap: {name: agents}}]}", "name: agents"},
	"extraVolumeMounts":           {"{config: {agents: {path: /agents}}, extraVolumes: [{name: agents, configMap: {name: agents}}], extraVolumeMounts: [{name: agents, mountPath: /agents}]}", "mountPath: /agents"},
	"tls.secretName":              {"{tls: {secretName: cert}}", "cert: /etc/voicegw-tls/tls.crt"},
	"drainSeconds":                {"{drainSeconds: 90}", "drain_timeout: 90s"},
	"service.type":                {"{service: {type: LoadBalancer}}", "type: LoadBalancer"},
	"service.port":                {"{service: {port: 8081}}", "port: 8081"},
	"ingress.enabled":             {"{ingress: {enabled: true, hosts: [voice.example.com]}}", "kind: Ingress"},
	"ingress.className":           {"{ingress: {enabled: true, hosts: [voice.example.com], className: nginx}}", `ingressClassName: "nginx"`},
	"ingress.annotations":         {"{ingress: {enabled: true, hosts: [voice.example.com], annotations: {a/b: 'true'}}}", `a/b: "true"`},
	"ingress.hosts":               {"{ingress: {enabled: true, hosts: ['*.example.com', voice.example.org]}}", "- voice.example.org"},
	"ingress.tlsSecret":           {"{ingress: {enabled: true, hosts: [voice.example.com], tlsSecret: cert}}", `secretName: "cert"`},
	"persistence.enabled":         {"{persistence: {enabled: false}}", "- name: data\n          emptyDir"},
	"persistence.size":            {"{persistence: {size: 5Gi}}", `storage: "5Gi"`},
	"persistence.storageClass":    {"{persistence: {storageClass: fast}}", `storageClassName: "fast"`},
	"resources":                   {"{resources: {limits: {memory: 2Gi}}}", "memory: 2Gi"},
	"podDisruptionBudget.enabled": {"{replicas: 2, config: {store: {url: 'nats://nats:4222'}}, podDisruptionBudget: {enabled: true}}", "kind: PodDisruptionBudget"},
	"autoscaling.enabled":         {"{autoscaling: {enabled: true}, config: {store: {url: 'nats://nats:4222'}}}", "kind: HorizontalPodAutoscaler"},
	"autoscaling.minReplicas":     {"{autoscaling: {enabled: true, minReplicas: 4}, config: {store: {url: 'nats://nats:4222'}}}", "minReplicas: 4"},
	"autoscaling.maxReplicas":     {"{autoscaling: {enabled: true, maxReplicas: 40}, config: {store: {url: 'nats://nats:4222'}}}", "maxReplicas: 40"},
	"autoscaling.sessions":        {"{autoscaling: {enabled: true, sessions: 2000000}, config: {store: {url: 'nats://nats:4222'}}}", `averageValue: "2000000"`},
	"networkPolicy.enabled":       {"{networkPolicy: {enabled: true}, config: {metrics: {listen: ':9100'}}}", "- ports: [{port: metrics}]"},
	"networkPolicy.metricsFrom":   {"{networkPolicy: {metricsFrom: [{ipBlock: {cidr: 10.1.0.0/16}}]}, config: {metrics: {listen: ':9100'}}}", "cidr: 10.1.0.0/16"},
	"serviceMonitor.enabled":      {"{serviceMonitor: {enabled: true}}", "kind: ServiceMonitor"},
	"serviceMonitor.interval":     {"{serviceMonitor: {enabled: true, interval: 30s}}", "interval: 30s"},
	"serviceMonitor.labels":       {"{serviceMonitor: {enabled: true, labels: {release: prom}}}", "release: prom"},
	"serviceMonitor.keySecret":    {"{serviceMonitor: {enabled: true, keySecret: scrape}}", `name: "scrape"`},
	"serviceMonitor.key":          {"{serviceMonitor: {enabled: true, key: other}}", `key: "other"`},
	"serviceMonitor.tlsConfig":    {"{serviceMonitor: {enabled: true, tlsConfig: {serverName: voice.example.com}}, tls: {secretName: cert}}", "serverName: voice.example.com"},
	"podAnnotations":              {"{podAnnotations: {a/b: c}}", "a/b: c"},
	"nodeSelector":                {"{nodeSelector: {zone: a}}", "zone: a"},
	"tolerations":                 {"{tolerations: [{key: voice, operator: Exists}]}", "key: voice"},
	"affinity":                    {"{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: Exists}]}]}}}}", "nodeAffinity"},
}

// schema is the part of values.schema.json for this test.
type schema struct {
	Type       any
	Properties map[string]schema
}

// leaves returns the paths of the values that are not sections; config is a value and a section.
func (s schema) leaves(prefix string) (paths []string) {
	for name, p := range s.Properties {
		if path := prefix + name; len(p.Properties) == 0 || path == "config" {
			paths = append(paths, path)
		}
		paths = append(paths, p.leaves(prefix+name+".")...)
	}
	slices.Sort(paths)
	return paths
}

// TestEveryDocumentedValue: each value of the schema has a case here, which is rendered, decoded, and given to the
// gateway.
func TestEveryDocumentedValue(t *testing.T) {
	text, err := os.ReadFile("helm/voicegw/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var whole schema
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	known := slices.DeleteFunc(whole.leaves(""), func(path string) bool { return path == "global" }) // Helm's own
	if cases := slices.Sorted(maps.Keys(documented)); !slices.Equal(known, cases) {
		t.Errorf("the schema has the values\n%q\nand there are cases for\n%q", known, cases)
	}
	for path, test := range documented {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			set := with(t, test.set, base)
			if files := all(t, set); !strings.Contains(files, test.want) {
				t.Errorf("no %q in\n%s", test.want, files)
			}
			if path != "podDisruptionBudget.enabled" && path != "networkPolicy.enabled" && strings.Contains(all(t, base), test.want) {
				t.Errorf("%q is also there without it", test.want)
			}
			made := install(t, set)
			made.coherent(t)
			made.starts(t)
		})
	}
}

// with returns values with changes.
func with(t *testing.T, over, under string) string {
	t.Helper()
	return toText(chartutil.CoalesceTables(values(t, over), values(t, under)))
}

// all returns all manifests.
func all(t *testing.T, set string) string {
	t.Helper()
	files, err := render(t, load(t), set)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text.WriteString(files[name])
	}
	return text.String()
}

// TestValuesFileMatchesSchema: values.yaml explains each value of the schema, and no other.
func TestValuesFileMatchesSchema(t *testing.T) {
	var paths func(prefix string, v map[string]any) []string
	paths = func(prefix string, v map[string]any) (all []string) {
		for name, value := range v {
			section, is := value.(map[string]any)
			if is && len(section) > 0 && prefix+name != "resources" {
				all = append(all, paths(prefix+name+".", section)...)
			} else {
				all = append(all, prefix+name)
			}
		}
		slices.Sort(all)
		return all
	}
	inFile := paths("", load(t).Values)
	inSchema := slices.DeleteFunc(slices.Sorted(maps.Keys(documented)), func(path string) bool { return strings.HasPrefix(path, "config.") })
	if !slices.Equal(inFile, inSchema) {
		t.Errorf("values.yaml has\n%q\nthe schema\n%q", inFile, inSchema)
	}
}

// TestCommentedExample enables the example below config in values.yaml.
func TestCommentedExample(t *testing.T) {
	text, err := os.ReadFile("helm/voicegw/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^config: \{\}\n((?:#.*\n)+)`).FindStringSubmatch(string(text))
	if m == nil {
		t.Fatal("values.yaml has no example below config")
	}
	made := install(t, "config:\n"+strings.ReplaceAll("\n"+m[1], "\n#", "\n"))
	if made.config["auth"] == nil || made.config["store"] == nil {
		t.Errorf("the example makes %v", made.config)
	}
	made.coherent(t)
	made.starts(t)
}

// installationPage returns docs/installation.md.
func installationPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../docs/installation.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// TestValuesOfThePage installs with the values and the Secret of docs/installation.md.
func TestValuesOfThePage(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```yaml\n(# values.*?)```").FindAllStringSubmatch(installationPage(t), -1)
	if len(blocks) < 2 {
		t.Fatalf("the page has %d examples of values", len(blocks))
	}
	for _, block := range blocks {
		made := install(t, block[1])
		made.coherent(t)
		made.starts(t)
	}
}

// features are values that are combined.
var features = []string{
	"{tls: {secretName: cert}}",
	"{config: {metrics: {listen: '0.0.0.0:9100'}}}",
	"{config: {hosts: ['voice.example.com', '*.example.org']}}",
	"{config: {api_key: hush-hush-0123456789, chat: {model: m, base_url: 'https://chat.example.com/v1', api_key: hush-hush}}}",
	"{config: {chat: {model: m, base_url: 'https://chat.example.com/v1', api_key_file: /p/chat}}, extraVolumes: [{name: p, secret: {secretName: password}}], extraVolumeMounts: [{name: p, mountPath: /p}]}",
	"{replicas: 3, config: {store: {url: 'nats://nats:4222'}}}",
	"{autoscaling: {enabled: true}, config: {store: {url: 'nats://nats:4222'}}}",
	"{serviceMonitor: {enabled: true, tlsConfig: {serverName: voice.example.com}}}",
	"{ingress: {enabled: true, hosts: [voice.example.com], tlsSecret: cert}}",
	"{persistence: {enabled: false}, networkPolicy: {enabled: false}}",
	"{existingSecret: keys}",
}

// TestCombinations gives every combination of at most two features to the gateway, and renders some of the larger ones. A
// secret of the values is only in objects of the kind Secret.
func TestCombinations(t *testing.T) {
	begin := "{config: {auth: " + auth + "}, existingSecret: voicegw}"
	for bits := range 1 << len(features) {
		set, n := begin, 0
		for f, feature := range features {
			if bits>>f&1 == 1 {
				set = with(t, feature, set)
				n++
			}
		}
		if bits>>3&3 == 3 {
			continue // a single chat model has one key
		}
		if n > 2 && bits%29 != 0 {
			continue
		}
		made := install(t, set)
		made.coherent(t)
		if n <= 2 {
			made.starts(t)
		}
		for file, object := range made.objects {
			if file != "secret.yaml" && strings.Contains(toText(object), "hush") {
				t.Errorf("%s holds a secret", file)
			}
		}
		if t.Failed() {
			t.Fatal(set)
		}
	}
}
