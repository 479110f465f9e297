package deploy

import (
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"
)

// values makes values of YAML.
func values(t *testing.T, text string) map[string]any {
	t.Helper()
	v, err := chartutil.ReadValues([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// render returns the manifests by the file of their template.
func render(t *testing.T, c *chart.Chart, set string) (map[string]string, error) {
	t.Helper()
	release := chartutil.ReleaseOptions{Name: "talk", Namespace: "voice", IsInstall: true}
	all, err := chartutil.ToRenderValues(c, values(t, set), release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	byName := map[string]string{}
	for path, text := range files {
		byName[path[strings.LastIndex(path, "/")+1:]] = text
	}
	return byName, nil
}

// decode decodes a manifest of Kubernetes as strictly as its server: an unknown field is an error. A ServiceMonitor is no
// part of Kubernetes, and is read as it is.
func decode(t *testing.T, file, text string) runtime.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme, autoscalingv2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	if file == "servicemonitor.yaml" {
		var u unstructured.Unstructured
		if err := yaml.UnmarshalStrict([]byte(text), &u.Object); err != nil {
			t.Fatalf("%s: %v\n%s", file, err, text)
		}
		return &u
	}
	object, _, err := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer().Decode([]byte(text), nil, nil)
	if err != nil {
		t.Fatalf("%s: %v\n%s", file, err, text)
	}
	return object
}

// installation is the output of the chart for some values.
type installation struct {
	objects map[string]runtime.Object // by file
	config  map[string]any            // voicegw.yaml
}

func install(t *testing.T, set string) installation {
	t.Helper()
	files, err := render(t, load(t), set)
	if err != nil {
		t.Fatal(err)
	}
	made := installation{objects: map[string]runtime.Object{}}
	for file, text := range files {
		if file != "NOTES.txt" && file != "_helpers.tpl" && strings.TrimSpace(text) != "" {
			made.objects[file] = decode(t, file, text)
		}
	}
	text := made.objects["secret.yaml"].(*corev1.Secret).StringData["voicegw.yaml"]
	if err := yaml.UnmarshalStrict([]byte(text), &made.config); err != nil {
		t.Fatalf("voicegw.yaml: %v\n%s", err, text)
	}
	return made
}

func (i installation) deployment() *appsv1.Deployment {
	return i.objects["deployment.yaml"].(*appsv1.Deployment)
}

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir("helm/voicegw")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheChartIsLinted(t *testing.T) {
	for _, m := range lint.All("helm/voicegw", nil, "voice", true).Messages {
		if m.Severity >= support.WarningSev || !strings.Contains(m.Err.Error(), "icon is recommended") {
			t.Errorf("%s", m.Error())
		}
	}
}

// TestAStrictDecoderFindsATypo: the decoder of these tests refuses a field that Kubernetes does not know.
func TestAStrictDecoderFindsATypo(t *testing.T) {
	files, err := render(t, load(t), "{existingSecret: keys}")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(files["deployment.yaml"], "terminationGracePeriodSeconds", "terminationGracePeriod", 1)
	scheme := runtime.NewScheme()
	if err := appsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	_, _, err = serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer().Decode([]byte(text), nil, nil)
	if err == nil || !strings.Contains(err.Error(), "terminationGracePeriod") {
		t.Errorf("error %v, want one that names the field", err)
	}
}

const several = "{replicas: 3, existingSecret: keys, config: {auth: " + auth + ", store: {url: 'nats://nats:4222'}}}"

// auth are the credentials of the gateways in these tests.
const auth = "{jwt: {login: {issuer: 'https://login.example.com', discovery: true, audience: [voicegw]}}}"

// TestInstallations is the table of values and their manifests.
func TestInstallations(t *testing.T) {
	for name, test := range map[string]struct {
		set   string
		files string // the manifests that do not always exist
		check func(t *testing.T, i installation)
	}{
		"auth alone": {
			set:   "{config: {auth: " + auth + "}}",
			files: "networkpolicy.yaml pvc.yaml",
			check: func(t *testing.T, i installation) {
				d := i.deployment()
				if *d.Spec.Replicas != 1 || d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
					t.Errorf("%d replicas, %s: two gateways must not share a data folder", *d.Spec.Replicas, d.Spec.Strategy.Type)
				}
				if _, ok := i.config["cluster"]; ok {
					t.Error("a gateway that is alone has a cluster")
				}
				if i.config["listen"] != "0.0.0.0:8080" || i.config["data_dir"] != "/data" || i.config["drain_timeout"] != "30s" {
					t.Errorf("voicegw.yaml is %v", i.config)
				}
				if d.Name != "talk-voicegw" {
					t.Errorf("the name is %s", d.Name)
				}
			},
		},
		"hardened": {
			set:   "{config: {insecure: true}}",
			files: "networkpolicy.yaml pvc.yaml",
			check: func(t *testing.T, i installation) {
				pod := i.deployment().Spec.Template.Spec
				c := pod.Containers[0]
				if !*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser != 65532 || *pod.AutomountServiceAccountToken {
					t.Errorf("the pod is %+v", pod.SecurityContext)
				}
				s := c.SecurityContext
				if !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" {
					t.Errorf("the container is %+v", s)
				}
				if c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.LivenessProbe.HTTPGet.Path != "/healthz" {
					t.Errorf("probes %s and %s", c.ReadinessProbe.HTTPGet.Path, c.LivenessProbe.HTTPGet.Path)
				}
			},
		},
		"three gateways": {
			set: several, files: "networkpolicy.yaml poddisruptionbudget.yaml",
			check: func(t *testing.T, i installation) {
				d := i.deployment()
				if *d.Spec.Replicas != 3 || d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue() != 0 {
					t.Errorf("%d replicas, %+v", *d.Spec.Replicas, d.Spec.Strategy)
				}
				if listen := i.config["cluster"].(map[string]any)["listen"]; listen != "0.0.0.0:8090" {
					t.Errorf("peers are listened to on %v", listen)
				}
				env := map[string]string{}
				for _, v := range d.Spec.Template.Spec.Containers[0].Env {
					env[v.Name] = v.Value
				}
				if env["VOICEGW_CLUSTER_URL"] != "http://$(POD_IP):8090" {
					t.Errorf("the environment is %v", env)
				}
				for _, v := range d.Spec.Template.Spec.Volumes {
					if v.Name == "data" && v.EmptyDir == nil {
						t.Error("three gateways share a volume")
					}
				}
				peers := i.objects["networkpolicy.yaml"].(*networkingv1.NetworkPolicy).Spec.Ingress[1]
				if len(peers.From) != 1 || peers.From[0].PodSelector == nil {
					t.Errorf("the peers are %+v", peers.From)
				}
			},
		},
		"a long drain": {
			set: "{drainSeconds: 600, config: {insecure: true}}", files: "networkpolicy.yaml pvc.yaml",
			check: func(t *testing.T, i installation) {
				if got := *i.deployment().Spec.Template.Spec.TerminationGracePeriodSeconds; got != 645 || i.config["drain_timeout"] != "600s" {
					t.Errorf("the pod has %d s, the gateway %v", got, i.config["drain_timeout"])
				}
			},
		},
		"without a volume": {set: "{persistence: {enabled: false}, config: {insecure: true}}", files: "networkpolicy.yaml"},
		"no network policy": {
			set: "{networkPolicy: {enabled: false}, config: {insecure: true}}", files: "pvc.yaml",
		},
		"an ingress": {
			set:   "{ingress: {enabled: true, className: nginx, hosts: [voice.example.com], tlsSecret: cert}, config: {insecure: true, hosts: [other.example.com]}}",
			files: "ingress.yaml networkpolicy.yaml pvc.yaml",
			check: func(t *testing.T, i installation) {
				hosts := strings.Trim(strings.Join(strings.Fields(toText(i.config["hosts"])), " "), "[]")
				for _, want := range []string{"voice.example.com", "other.example.com", "talk-voicegw.voice.svc"} {
					if !strings.Contains(hosts, want) {
						t.Errorf("hosts %s, without %s", hosts, want)
					}
				}
				if in := i.objects["ingress.yaml"].(*networkingv1.Ingress); in.Spec.TLS[0].SecretName != "cert" || *in.Spec.IngressClassName != "nginx" {
					t.Errorf("%+v", in.Spec)
				}
			},
		},
		"a monitor": {
			set: "{serviceMonitor: {enabled: true, labels: {release: prom}}, existingSecret: keys, config: {insecure: true}}", files: "networkpolicy.yaml pvc.yaml servicemonitor.yaml",
			check: func(t *testing.T, i installation) {
				u := i.objects["servicemonitor.yaml"].(*unstructured.Unstructured)
				endpoints, _, err := unstructured.NestedSlice(u.Object, "spec", "endpoints")
				if err != nil || len(endpoints) != 1 || u.GetLabels()["release"] != "prom" {
					t.Errorf("%v, %v", u.Object, err)
				}
			},
		},
		"autoscaling": {
			set:   "{autoscaling: {enabled: true}, existingSecret: keys, config: {insecure: true, store: {url: 'nats://nats:4222'}}}",
			files: "autoscaler.yaml networkpolicy.yaml poddisruptionbudget.yaml",
			check: func(t *testing.T, i installation) {
				if i.deployment().Spec.Replicas != nil {
					t.Error("the chart fixes the number of pods that the autoscaler chooses")
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			made := install(t, test.set)
			want := strings.Fields("secret.yaml deployment.yaml service.yaml " + test.files)
			for _, file := range want {
				if made.objects[file] == nil {
					t.Errorf("%s is missing", file)
				}
			}
			if len(made.objects) != len(want) {
				t.Errorf("%d objects, want %d: %v", len(made.objects), len(want), want)
			}
			if test.check != nil {
				test.check(t, made)
			}
			made.coherent(t)
			made.starts(t)
		})
	}
}

// TestValuesThatCannotWork: they are refused with an error that names the missing value.
func TestValuesThatCannotWork(t *testing.T) {
	for name, test := range map[string]struct{ set, want string }{
		"several without a store":  {"{replicas: 2, existingSecret: keys}", "config.store.url"},
		"several without a secret": {"{replicas: 2, config: {insecure: true, store: {url: 'nats://nats:4222'}}}", "VOICEGW_CLUSTER_SECRET"},
		"scaling without a store":  {"{autoscaling: {enabled: true}, existingSecret: keys}", "config.store.url"},
		"more pods at least than at most": {
			"{autoscaling: {enabled: true, minReplicas: 5, maxReplicas: 3}, existingSecret: keys, config: {store: {url: 'nats://nats:4222'}}}", "autoscaling.minReplicas",
		},
		"an ingress without a host": {"{ingress: {enabled: true}, existingSecret: keys}", "ingress.hosts"},
		"no credentials":            {"{}", "config.auth is missing"},
		"two certificates":          {"{existingSecret: keys, tls: {secretName: t}, config: {tls: {certificates: [{cert: a, key: b}]}}}", "config.tls.certificates"},
		"ACME":                      {"{existingSecret: keys, config: {tls: {acme: {hosts: [voice.example.com]}}}}", "cert-manager"},
		"the metrics' port taken":   {"{existingSecret: keys, config: {metrics: {listen: ':8080'}}}", "config.metrics.listen"},
		"metrics without a reader":  {"{existingSecret: keys, serviceMonitor: {enabled: true}, config: {metrics: {listen: '127.0.0.1:9100'}}}", "config.metrics.listen"},
		"a scrape without a key":    {"{serviceMonitor: {enabled: true}, config: {insecure: true}}", "serviceMonitor.keySecret"},
		"a scrape over TLS":         {"{existingSecret: keys, tls: {secretName: t}, serviceMonitor: {enabled: true}}", "serviceMonitor.tlsConfig"},
		"an annotation":             {"{podAnnotations: {a: 1}}", "podAnnotations"},
		"a typo":                    {"{replcas: 3}", "replcas"},
		"a typo below":              {"{service: {prt: 80}}", "prt"},
		"a number as text":          {"{replicas: three}", "replicas"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := render(t, load(t), test.set); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one about %s", err, test.want)
			}
		})
	}
}

func toText(v any) string {
	text, err := yaml.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
