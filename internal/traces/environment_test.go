package traces

import (
	"io/fs"
	"maps"
	"strings"
	"testing"
	"time"
)

// TestEnvironment is the table of the standard variables.
func TestEnvironment(t *testing.T) {
	for _, c := range []struct {
		name    string
		set     Options
		env     map[string]string
		want    Options
		problem string
	}{
		{"nothing", Options{}, nil, Options{Protocol: HTTP, Endpoint: "http://localhost:4318/v1/traces"}, ""},
		{"nothing by gRPC", Options{Protocol: GRPC}, nil, Options{Protocol: GRPC, Endpoint: "http://localhost:4317"}, ""},
		{"the settings", Options{Protocol: HTTP, Endpoint: "https://c:1/"}, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://d", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
			Options{Protocol: HTTP, Endpoint: "https://c:1/v1/traces"}, ""},
		{"the settings with the path", Options{Endpoint: "https://c:1/v1/traces"}, nil, Options{Protocol: HTTP, Endpoint: "https://c:1/v1/traces"}, ""},
		{"for all signals", Options{}, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://d:1/x/"}, Options{Protocol: HTTP, Endpoint: "http://d:1/x/v1/traces"}, ""},
		{"for traces", Options{}, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://d:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://e:1/in"}, Options{Protocol: HTTP, Endpoint: "http://e:1/in"}, ""},
		{"gRPC without a scheme", Options{}, map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_ENDPOINT": "d:4317"}, Options{Protocol: GRPC, Endpoint: "https://d:4317"}, ""},
		{"gRPC without encryption", Options{}, map[string]string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_ENDPOINT": "d:4317", "OTEL_EXPORTER_OTLP_INSECURE": "true"}, Options{Protocol: GRPC, Endpoint: "http://d:4317"}, ""},
		{"headers", Options{}, map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "a=b%20c, d=e"}, Options{Protocol: HTTP, Endpoint: "http://localhost:4318/v1/traces", Headers: map[string]string{"a": "b c", "d": "e"}}, ""},
		{"headers of the settings", Options{Headers: map[string]string{"a": "1"}}, map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "a=b"}, Options{Protocol: HTTP, Endpoint: "http://localhost:4318/v1/traces", Headers: map[string]string{"a": "1"}}, ""},
		{"time and gzip", Options{}, map[string]string{"OTEL_EXPORTER_OTLP_TIMEOUT": "2500", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}, Options{Protocol: HTTP, Endpoint: "http://localhost:4318/v1/traces", Timeout: 2500 * time.Millisecond, Compress: true}, ""},
		{"the resource", Options{Resource: map[string]string{"service.name": "voicegw", "x": "y"}}, map[string]string{"OTEL_SERVICE_NAME": "desk", "OTEL_RESOURCE_ATTRIBUTES": "service.name=other,deployment.environment.name=production"},
			Options{Protocol: HTTP, Endpoint: "http://localhost:4318/v1/traces", Resource: map[string]string{"service.name": "desk", "x": "y", "deployment.environment.name": "production"}}, ""},
		{"an unknown protocol", Options{}, map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, Options{}, "OTEL_EXPORTER_OTLP_PROTOCOL must be"},
		{"no URL", Options{}, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "d:4318"}, Options{}, "OTEL_EXPORTER_OTLP_ENDPOINT must be"},
		{"a password", Options{}, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://a:cherry@d:4318"}, Options{}, "OTEL_EXPORTER_OTLP_ENDPOINT must be"},
		{"no pairs", Options{}, map[string]string{"OTEL_EXPORTER_OTLP_TRACES_HEADERS": "cherry"}, Options{}, "OTEL_EXPORTER_OTLP_TRACES_HEADERS must be"},
		{"no time", Options{}, map[string]string{"OTEL_EXPORTER_OTLP_TIMEOUT": "10s"}, Options{}, "OTEL_EXPORTER_OTLP_TIMEOUT must be"},
		{"an unknown compression", Options{}, map[string]string{"OTEL_EXPORTER_OTLP_COMPRESSION": "zip"}, Options{}, "OTEL_EXPORTER_OTLP_COMPRESSION must be"},
		{"certificates for nothing", Options{}, map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": "ca.pem"}, Options{}, "for nothing"},
		{"a certificate that is away", Options{Endpoint: "https://d"}, map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": "away.pem"}, Options{}, "OTEL_EXPORTER_OTLP_CERTIFICATE cannot be read"},
		{"no certificate", Options{Endpoint: "https://d"}, map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": "ca.pem"}, Options{}, "without a certificate"},
		{"a key alone", Options{Endpoint: "https://d"}, map[string]string{"OTEL_EXPORTER_OTLP_CLIENT_KEY": "key.pem"}, Options{}, "must be given together"},
		{"no resource", Options{}, map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "=x"}, Options{}, "OTEL_RESOURCE_ATTRIBUTES must be"},
	} {
		got := c.set
		err := Environment{Get: func(name string) string { return c.env[name] }, ReadFile: func(path string) ([]byte, error) {
			if path == "ca.pem" {
				return []byte("nothing"), nil
			}
			return nil, fs.ErrNotExist
		}}.Complete(&got)
		switch {
		case c.problem != "":
			if err == nil || !strings.Contains(err.Error(), c.problem) || strings.Contains(err.Error(), "cherry") {
				t.Errorf("%s: the error is %v", c.name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case got.Protocol != c.want.Protocol || got.Endpoint != c.want.Endpoint || got.Timeout != c.want.Timeout || got.Compress != c.want.Compress ||
			!maps.Equal(got.Headers, c.want.Headers) || !maps.Equal(got.Resource, c.want.Resource):
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	if _, err := New(Options{Endpoint: "ftp://x"}); err == nil {
		t.Error("an invalid endpoint is accepted")
	}
	for value, want := range map[string]bool{"": false, "true": true, "TRUE": true, "1": false} {
		if (Environment{Get: func(string) string { return value }}).Disabled() != want {
			t.Errorf("OTEL_SDK_DISABLED=%q", value)
		}
	}
}

// FuzzParsePairs: what is read has no line breaks, which would make other headers of it.
func FuzzParsePairs(f *testing.F) {
	f.Add("authorization=Bearer%20abc,x=y")
	f.Add("a=%0d%0ab")
	f.Fuzz(func(t *testing.T, text string) {
		pairs, err := ParsePairs(text)
		if err != nil && pairs != nil {
			t.Error("there are pairs and an error")
		}
		for name, value := range pairs {
			if name == "" || strings.ContainsAny(name+value, "\r\n\x00") {
				t.Errorf("%q: %q", name, value)
			}
		}
	})
}
