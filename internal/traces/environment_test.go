package traces

import (
	"maps"
	"strings"
	"testing"
)

// TestEnvironment is the table of the variables that are not left to the exporters.
func TestEnvironment(t *testing.T) {
	for _, c := range []struct {
		name    string
		set     Options
		env     map[string]string
		want    Options
		problem string
	}{
		{"nothing", Options{}, nil, Options{Protocol: HTTP, Endpoint: "http://localhost:4318"}, ""},
		{"nothing by gRPC", Options{Protocol: GRPC}, nil, Options{Protocol: GRPC, Endpoint: "http://localhost:4317"}, ""},
		{"the settings", Options{Protocol: HTTP, Endpoint: "https://c:1/"}, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://d", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
			Options{Protocol: HTTP, Endpoint: "https://c:1/"}, ""},
		{"the exporter's endpoint", Options{}, map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://d", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, Options{Protocol: GRPC}, ""},
		{"headers", Options{Endpoint: "http://c"}, map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "a=b%20c, d=e"}, Options{Protocol: HTTP, Endpoint: "http://c", Headers: map[string]string{"a": "b c", "d": "e"}}, ""},
		{"headers of the settings", Options{Endpoint: "http://c", Headers: map[string]string{"a": "1"}}, map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "a=b"}, Options{Protocol: HTTP, Endpoint: "http://c", Headers: map[string]string{"a": "1"}}, ""},
		{"an unknown protocol", Options{}, map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, Options{}, "OTEL_EXPORTER_OTLP_PROTOCOL must be"},
		{"no pairs", Options{}, map[string]string{"OTEL_EXPORTER_OTLP_TRACES_HEADERS": "cherry"}, Options{}, "OTEL_EXPORTER_OTLP_TRACES_HEADERS must be"},
	} {
		got := c.set
		err := Environment(func(name string) string { return c.env[name] }).Complete(&got)
		switch {
		case c.problem != "":
			if err == nil || !strings.Contains(err.Error(), c.problem) || strings.Contains(err.Error(), "cherry") {
				t.Errorf("%s: the error is %v", c.name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case got.Protocol != c.want.Protocol || got.Endpoint != c.want.Endpoint || !maps.Equal(got.Headers, c.want.Headers):
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	for value, want := range map[string]bool{"": false, "true": true, "TRUE": true, "1": false} {
		if Environment(func(string) string { return value }).Disabled() != want {
			t.Errorf("OTEL_SDK_DISABLED=%q", value)
		}
	}
}
