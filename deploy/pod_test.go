package deploy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// cluster has the Secrets and ConfigMaps in the values of these tests, by name.
var cluster = sync.OnceValue(func() map[string]map[string]string {
	cert, key := certificate("voice.example.com")
	return map[string]map[string]string{
		"voicegw":  secretOfThePage(),
		"keys":     {"GEMINI_API_KEY": "a-key-of-gemini", "VOICEGW_API_KEY": "an-operators-key-0123456789", "VOICEGW_CLUSTER_SECRET": strings.Repeat("0123456789abcdef", 4)},
		"cert":     {"tls.crt": cert, "tls.key": key},
		"password": {"chat": "a-key-of-chat"},
		"agents":   {"sales.yaml": "id: sales\nname: Sales\nplaybook: Sell.\n"},
	}
})

// secretOfThePage is the Secret that the kubectl command in docs/installation.md creates.
func secretOfThePage() map[string]string {
	page, err := os.ReadFile("../docs/installation.md")
	if err != nil {
		panic(err)
	}
	secret := map[string]string{}
	for _, m := range regexp.MustCompile(`--from-literal=([A-Z_]+)=`).FindAllStringSubmatch(string(page), -1) {
		secret[m[1]] = strings.Repeat("0123456789abcdef", 4)
	}
	return secret
}

// certificate returns a certificate for hosts and its key.
func certificate(hosts ...string) (cert, key string) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: hosts, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		panic(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}

// starts gives the container's arguments, variables and mounted files to the program, which must accept them.
func (i installation) starts(t *testing.T) {
	t.Helper()
	pod := i.deployment().Spec.Template.Spec
	c := pod.Containers[0]
	root := t.TempDir()
	var mounts []string
	for _, mount := range c.VolumeMounts {
		mounts = append(mounts, regexp.QuoteMeta(mount.MountPath))
		for name, text := range i.mounted(t, pod, mount.Name) {
			write(t, filepath.Join(root, mount.MountPath, name), text)
		}
	}
	// here replaces the container's paths in a text with the local ones.
	path := regexp.MustCompile(`(^|[ ='"])((?:` + strings.Join(mounts, "|") + `)(?:[/'"\s,]|$))`)
	here := func(text string) string { return path.ReplaceAllString(text, "${1}"+root+"${2}") }
	config := filepath.Join(root, "etc/voicegw/voicegw.yaml")
	write(t, config, here(i.objects["secret.yaml"].(*corev1.Secret).StringData["voicegw.yaml"]))
	environ := []string{"VOICEGW_DATA_DIR=/data"} // the image sets it
	known := map[string]string{}
	for _, v := range c.Env {
		value := v.Value
		if from := v.ValueFrom; from != nil {
			switch {
			case from.FieldRef != nil && from.FieldRef.FieldPath == "status.podIP":
				value = "10.0.0.1"
			case from.ResourceFieldRef != nil && from.ResourceFieldRef.Resource == "limits.memory":
				value = "1073741824"
			case from.SecretKeyRef != nil:
				value = cluster()[from.SecretKeyRef.Name][from.SecretKeyRef.Key]
			}
		}
		value = regexp.MustCompile(`\$\(([A-Z_]+)\)`).ReplaceAllStringFunc(value, func(name string) string { return known[name[2:len(name)-1]] })
		known[v.Name] = value
		environ = append(environ, v.Name+"="+here(value))
	}
	for _, from := range c.EnvFrom {
		secret, ok := cluster()[from.SecretRef.Name]
		if !ok {
			t.Fatalf("there is no Secret %q", from.SecretRef.Name)
		}
		for name, value := range secret {
			environ = append(environ, name+"="+value)
		}
	}
	args := slices.Clone(c.Args)
	for n := range args {
		args[n] = here(args[n])
	}
	checkConfig(t, environ, args...)
}

// mounted returns the files of a volume.
func (i installation) mounted(t *testing.T, pod corev1.PodSpec, name string) map[string]string {
	t.Helper()
	for _, v := range pod.Volumes {
		switch {
		case v.Name != name:
			continue
		case v.Secret != nil && v.Secret.SecretName == i.deployment().Name:
			return i.objects["secret.yaml"].(*corev1.Secret).StringData
		case v.Secret != nil:
			return found(t, v.Secret.SecretName)
		case v.ConfigMap != nil:
			return found(t, v.ConfigMap.Name)
		default:
			return nil
		}
	}
	t.Fatalf("no volume %q for a mount", name)
	return nil
}

func found(t *testing.T, name string) map[string]string {
	t.Helper()
	data, ok := cluster()[name]
	if !ok {
		t.Fatalf("there is no Secret or ConfigMap %q", name)
	}
	return data
}

// coherent checks that several objects agree.
func (i installation) coherent(t *testing.T) {
	t.Helper()
	c := i.deployment().Spec.Template.Spec.Containers[0]
	tls, _ := i.config["tls"].(map[string]any)
	want := corev1.URISchemeHTTP
	if tls["certificates"] != nil {
		want = corev1.URISchemeHTTPS
	}
	for name, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe} {
		if probe.HTTPGet.Scheme != want {
			t.Errorf("the %s probe speaks %s, the gateway %s", name, probe.HTTPGet.Scheme, want)
		}
	}
	i.portsAreServed(t, c)
}

// portsAreServed checks that the gateway listens on each port of a Service, a monitor or a policy.
func (i installation) portsAreServed(t *testing.T, c corev1.Container) {
	t.Helper()
	listen := map[string]string{"http": toText(i.config["listen"])}
	if m, ok := i.config["metrics"].(map[string]any); ok {
		listen["metrics"] = toText(m["listen"])
	}
	if p, ok := i.config["cluster"].(map[string]any); ok {
		listen["peers"] = toText(p["listen"])
	}
	ports := map[string]bool{}
	for _, p := range c.Ports {
		ports[p.Name] = true
		if address := strings.Trim(listen[p.Name], "'\"\n"); !strings.HasSuffix(address, fmt.Sprintf(":%d", p.ContainerPort)) {
			t.Errorf("the port %s is %d, and the gateway listens on %q", p.Name, p.ContainerPort, address)
		}
	}
	services := map[string]bool{}
	for _, file := range []string{"service.yaml", "metricsservice.yaml"} {
		s, ok := i.objects[file].(*corev1.Service)
		if !ok {
			continue
		}
		for _, p := range s.Spec.Ports {
			services[p.Name] = true
			if !ports[p.TargetPort.StrVal] {
				t.Errorf("%s leads to the port %s, which the container does not have", file, p.TargetPort.StrVal)
			}
		}
	}
	if u, ok := i.objects["servicemonitor.yaml"].(*unstructured.Unstructured); ok {
		endpoints, _, err := unstructured.NestedSlice(u.Object, "spec", "endpoints")
		if err != nil || len(endpoints) != 1 {
			t.Fatalf("endpoints %v: %v", endpoints, err)
		}
		e := endpoints[0].(map[string]any)
		if port, _ := e["port"].(string); !services[port] || (port == "http") == (i.config["metrics"] != nil) {
			t.Errorf("the monitor reads the port %s; the Services have %v, and metrics is %v", port, services, i.config["metrics"])
		}
		if (e["port"] == "http") != (e["authorization"] != nil) {
			t.Errorf("the monitor's endpoint is %v: a key is for the gateway's own port", e)
		}
	}
	if p, ok := i.objects["networkpolicy.yaml"].(*networkingv1.NetworkPolicy); ok {
		open := map[string]bool{}
		for _, rule := range p.Spec.Ingress {
			for _, port := range rule.Ports {
				open[port.Port.StrVal] = true
			}
		}
		for name := range ports {
			if !open[name] {
				t.Errorf("the network policy closes the port %s", name)
			}
		}
	}
}
