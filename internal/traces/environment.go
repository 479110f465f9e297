package traces

import (
	"fmt"
	"strings"

	"voicegw/config/setting"
)

// Environment returns a variable, or "". Its methods read those of
// https://opentelemetry.io/docs/specs/otel/protocol/exporter/ (read 2026-11-25) that the SDK leaves to the program.
type Environment func(name string) string

// Disabled reports whether OTEL_SDK_DISABLED turns traces off; it overrides the settings.
func (e Environment) Disabled() bool { return strings.EqualFold(e("OTEL_SDK_DISABLED"), "true") }

// exporter returns a variable of exporters and its name; the one for traces has priority.
func (e Environment) exporter(name string) (value, from string) {
	from = "OTEL_EXPORTER_OTLP_TRACES_" + name
	if value = e(from); value == "" {
		from = "OTEL_EXPORTER_OTLP_" + name
		value = e(from)
	}
	return strings.TrimSpace(value), from
}

// Headers returns the headers of the environment. They are secrets, so the error shows no value.
func (e Environment) Headers() (map[string]string, error) {
	value, from := e.exporter("HEADERS")
	headers, err := setting.ParsePairs(value)
	if err != nil {
		return nil, fmt.Errorf("%s %w", from, err)
	}
	return headers, nil
}

// Complete fills in the protocol and the headers from the environment, and the endpoint if the environment has none.
func (e Environment) Complete(o *Options) error {
	if o.Protocol == "" {
		switch value, from := e.exporter("PROTOCOL"); value {
		case "", "http/protobuf":
			o.Protocol = HTTP
		case "grpc":
			o.Protocol = GRPC
		default:
			return fmt.Errorf("%s must be http/protobuf or grpc", from)
		}
	}
	if value, _ := e.exporter("ENDPOINT"); value == "" && o.Endpoint == "" {
		o.Endpoint = map[Protocol]string{HTTP: "http://localhost:4318", GRPC: "http://localhost:4317"}[o.Protocol]
	}
	if len(o.Headers) > 0 {
		return nil
	}
	headers, err := e.Headers()
	o.Headers = headers
	return err
}
