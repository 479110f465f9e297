package traces

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// The variables of the OpenTelemetry specification that are read:
// https://opentelemetry.io/docs/specs/otel/protocol/exporter/ and
// https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/ (read 2026-11-25).
// Those of exporters are also read with TRACES_ behind OTLP_, which has priority.
const (
	varPrefix   = "OTEL_EXPORTER_OTLP_"
	varTraces   = "TRACES_"
	varDisabled = "OTEL_SDK_DISABLED"
	varService  = "OTEL_SERVICE_NAME"
	varResource = "OTEL_RESOURCE_ATTRIBUTES"
)

// The collector without a setting and without a variable, and what is added to an endpoint that stands
// for all signals.
const (
	defaultHTTP = "http://localhost:4318"
	defaultGRPC = "http://localhost:4317"
	signalPath  = "/v1/traces"
)

// Environment is how the standard variables are read.
type Environment struct {
	// Get returns a variable; empty if it is not set.
	Get func(name string) string
	// ReadFile reads a file of certificates.
	ReadFile func(path string) ([]byte, error)
}

// Disabled reports whether OTEL_SDK_DISABLED turns traces off, whatever the settings say.
func (e Environment) Disabled() bool { return strings.EqualFold(e.Get(varDisabled), "true") }

// exporter returns a variable of exporters and its name.
func (e Environment) exporter(name string) (value, from string) {
	from = varPrefix + varTraces + name
	if value = e.Get(from); value == "" {
		from = varPrefix + name
		value = e.Get(from)
	}
	return strings.TrimSpace(value), from
}

// Complete fills in what the options leave open: from the variables, or with the defaults. Endpoint is then
// for the signal: for HTTP it has its path. The error names each variable that is wrong and shows no value,
// because headers are secrets.
func (e Environment) Complete(o *Options) error {
	return errors.Join(e.protocol(o), e.endpoint(o), e.headers(o), e.timeout(o), e.compression(o), e.trust(o), e.resource(o))
}

func (e Environment) protocol(o *Options) error {
	if o.Protocol != "" {
		return nil
	}
	value, from := e.exporter("PROTOCOL")
	switch value {
	case "", "http/protobuf":
		o.Protocol = HTTP
	case "grpc":
		o.Protocol = GRPC
	default:
		return fmt.Errorf("%s must be http/protobuf or grpc", from)
	}
	return nil
}

func (e Environment) endpoint(o *Options) error {
	if o.Endpoint != "" {
		if o.Protocol != GRPC {
			o.Endpoint = forSignal(o.Endpoint)
		}
		return nil
	}
	value, from := e.exporter("ENDPOINT")
	all := from == varPrefix+"ENDPOINT"
	switch {
	case value == "" && o.Protocol == GRPC:
		o.Endpoint = defaultGRPC
		return nil
	case value == "":
		o.Endpoint = defaultHTTP + signalPath
		return nil
	case o.Protocol == GRPC && !strings.Contains(value, "://"):
		scheme := "https://"
		if plain, _ := e.exporter("INSECURE"); strings.EqualFold(plain, "true") {
			scheme = "http://"
		}
		value = scheme + value
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return fmt.Errorf("%s must be a whole URL without a user, such as %s", from, defaultHTTP)
	}
	if o.Endpoint = value; o.Protocol != GRPC && all {
		o.Endpoint = forSignal(value)
	}
	return nil
}

// forSignal adds the path of the signal to an endpoint for all signals, unless it is there.
func forSignal(endpoint string) string {
	return strings.TrimSuffix(strings.TrimRight(endpoint, "/"), signalPath) + signalPath
}

func (e Environment) headers(o *Options) error {
	if len(o.Headers) > 0 {
		return nil
	}
	value, from := e.exporter("HEADERS")
	headers, err := ParsePairs(value)
	if err != nil {
		return fmt.Errorf("%s %w", from, err)
	}
	o.Headers = headers
	return nil
}

func (e Environment) timeout(o *Options) error {
	value, from := e.exporter("TIMEOUT")
	if value == "" || o.Timeout != 0 {
		return nil
	}
	ms, err := strconv.Atoi(value)
	if err != nil || ms < 1 || ms > int(time.Minute/time.Millisecond) {
		return fmt.Errorf("%s must be a time in ms, from 1 to 60000", from)
	}
	o.Timeout = time.Duration(ms) * time.Millisecond
	return nil
}

func (e Environment) compression(o *Options) error {
	value, from := e.exporter("COMPRESSION")
	switch value {
	case "", "none":
	case "gzip":
		o.Compress = true
	default:
		return fmt.Errorf("%s must be gzip or none", from)
	}
	return nil
}

// trust reads certificates: those to trust, and the gateway's own with its key.
func (e Environment) trust(o *Options) error {
	roots, fromRoots := e.exporter("CERTIFICATE")
	own, fromOwn := e.exporter("CLIENT_CERTIFICATE")
	key, fromKey := e.exporter("CLIENT_KEY")
	if roots == "" && own == "" && key == "" {
		return nil
	}
	if strings.HasPrefix(o.Endpoint, "http://") {
		return fmt.Errorf("the endpoint of the traces begins with http://, so the certificates of %s, %s and %s are for nothing", fromRoots, fromOwn, fromKey)
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if roots != "" {
		pem, err := e.ReadFile(roots)
		if err != nil {
			return fmt.Errorf("%s cannot be read: %w", fromRoots, err)
		}
		if trust.RootCAs = x509.NewCertPool(); !trust.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s names a file without a certificate in PEM", fromRoots)
		}
	}
	switch {
	case own == "" && key == "":
	case own == "" || key == "":
		return fmt.Errorf("%s and %s must be given together", fromOwn, fromKey)
	default:
		chain, errOwn := e.ReadFile(own)
		secret, errKey := e.ReadFile(key)
		pair, err := tls.X509KeyPair(chain, secret)
		if err = errors.Join(errOwn, errKey, err); err != nil {
			return fmt.Errorf("%s and %s must name files with a certificate and its key in PEM: %w", fromOwn, fromKey, err)
		}
		trust.Certificates = []tls.Certificate{pair}
	}
	o.TLS = trust
	return nil
}

// resource adds to what the options say of the gateway; the variables have priority.
func (e Environment) resource(o *Options) error {
	pairs, err := ParsePairs(e.Get(varResource))
	if err != nil {
		return fmt.Errorf("%s %w", varResource, err)
	}
	if o.Resource == nil {
		o.Resource = map[string]string{}
	}
	for key, value := range pairs {
		o.Resource[key] = value
	}
	if name := e.Get(varService); name != "" {
		o.Resource["service.name"] = name
	}
	return nil
}

// maxPairs bounds what ParsePairs returns.
const maxPairs = 128

// ParsePairs reads name=value,name=value, in which values may have characters as %20, as the specification
// writes headers and attributes. The error is the end of a sentence and shows nothing of the text.
func ParsePairs(text string) (map[string]string, error) {
	pairs := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, written, ok := strings.Cut(part, "=")
		value, err := url.PathUnescape(strings.TrimSpace(written))
		name = strings.TrimSpace(name)
		if !ok || err != nil || name == "" || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) ||
			strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r) }) {
			return nil, errors.New(`must be name=value, or several with commas between them, with special characters of the values as in URLs: authorization=Bearer%20abc`)
		}
		if pairs[name] = value; len(pairs) > maxPairs {
			return nil, fmt.Errorf("must have at most %d pairs", maxPairs)
		}
	}
	return pairs, nil
}
