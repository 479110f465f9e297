package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"voicegw/internal/quota"
)

const (
	maxChatBody  = 1 << 20
	maxImageBody = 8 << 20
	// maxBigBodies limits the messages above maxChatBody in memory (each takes several times its size), maxBigOfOne
	// those of an address.
	maxBigBodies = 12
	maxBigOfOne  = 3
)

type bigBodies struct {
	all    chan struct{} // a slot for each
	byAddr *quota.Quota[netip.Addr]
}

func (b *bigBodies) enter(addr netip.Addr, shared bool) (leave func(), ok bool) {
	key := quota.AddressKey(addr)
	if !shared && !b.byAddr.Take(key) {
		return nil, false
	}
	give := func() {
		if !shared {
			b.byAddr.Give(key)
		}
	}
	select {
	case b.all <- struct{}{}:
		return func() { <-b.all; give() }, true
	default:
		give()
		return nil, false
	}
}

var errBigBodies = errors.New("too many large messages at once")

// readBody reads a JSON body; strict rejects unknown fields.
func readBody(w http.ResponseWriter, r *http.Request, into any, strict bool) *problem {
	if no := jsonOnly(r); no != nil {
		return no
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxChatBody))
	return takeBody(w, raw, err, into, strict)
}

// readTurn reads a message to the text agent, larger if the model accepts images. The caller must call done at the end.
func (s *Server) readTurn(w http.ResponseWriter, r *http.Request, into any, strict bool) (done func(), no *problem) {
	done = func() {}
	if !s.opts.Chat.Sees() {
		return done, readBody(w, r, into, strict)
	}
	if no := jsonOnly(r); no != nil {
		return done, no
	}
	body := http.MaxBytesReader(w, r.Body, maxImageBody)
	raw, err := io.ReadAll(io.LimitReader(body, maxChatBody+1))
	if err == nil && len(raw) > maxChatBody {
		addr := s.clientAddr(r)
		if leave, has := s.big.enter(addr, s.manyBehind(r, addr)); has {
			done = leave
			var rest []byte
			rest, err = io.ReadAll(body)
			raw = append(raw, rest...)
		} else {
			err = errBigBodies
		}
	}
	return done, takeBody(w, raw, err, into, strict)
}

func jsonOnly(r *http.Request) *problem {
	if isJSON(r.Header.Get("Content-Type")) {
		return nil
	}
	return refusal(http.StatusUnsupportedMediaType, "invalid_message",
		"The body must be JSON, with Content-Type: application/json.")
}

// takeBody decodes a body; err is the error of reading it.
func takeBody(w http.ResponseWriter, raw []byte, err error, into any, strict bool) *problem {
	if err == nil {
		err = decodeBody(raw, into, strict)
	}
	var twice repeatedField
	var tooBig *http.MaxBytesError
	var otherType *json.UnmarshalTypeError
	var no *problem
	switch {
	case err == nil:
		return nil
	case errors.As(err, &twice):
		no = invalid("The field " + string(twice) + " is repeated; give it once.")
		no.param = string(twice)
		return no
	case errors.As(err, &otherType) && otherType.Field != "":
		return invalid("The body cannot be read: the field " + clip(otherType.Field) + " cannot be " +
			clip(otherType.Value) + ".")
	case errors.Is(err, os.ErrDeadlineExceeded):
		no = refusal(http.StatusRequestTimeout, "too_slow",
			"The body did not arrive within "+bodyTime.String()+"; send it again.")
	case errors.As(err, &tooBig):
		no = refusal(http.StatusRequestEntityTooLarge, "invalid_message",
			fmt.Sprintf("The body is larger than %d MiB.", tooBig.Limit>>20))
	case errors.Is(err, errBigBodies):
		no = refusal(http.StatusServiceUnavailable, "full", fmt.Sprintf(
			"The gateway is processing too many messages above %d MiB; try again in a moment.",
			maxChatBody>>20)).after(5 * time.Second)
	default:
		return invalid("The body cannot be read: " + clip(err.Error()) + ".")
	}
	w.Header().Set("Connection", "close")
	return no
}

func decodeBody(raw []byte, into any, strict bool) error {
	err := unambiguous(json.NewDecoder(bytes.NewReader(raw)), "", 0, strict)
	if errors.Is(err, errDeep) || errors.As(err, new(repeatedField)) {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(into); err != nil {
		return err //nolint:wrapcheck // takeBody writes the answer
	}
	if _, more := d.Token(); !errors.Is(more, io.EOF) {
		return errors.New("unexpected data after the JSON object")
	}
	return nil
}

// maxDepth limits the nesting of a body's JSON. The deepest valid body has five levels.
const maxDepth = 32

var errDeep = fmt.Errorf("it is nested deeper than %d levels", maxDepth)

// repeatedField is the path of a repeated field. encoding/json uses the last value, other parsers the first.
type repeatedField string

func (f repeatedField) Error() string { return "the field " + string(f) + " is repeated" }

// unambiguous reads one JSON value at a path. folded means that the outermost names are case-insensitive.
func unambiguous(d *json.Decoder, path string, depth int, folded bool) error {
	token, err := d.Token()
	delim, nested := token.(json.Delim)
	switch {
	case err != nil || !nested:
		return err
	case depth == maxDepth:
		return errDeep
	}
	names := map[string]bool{}
	for i := 0; err == nil && d.More(); i++ {
		at := path + "[" + strconv.Itoa(i) + "]"
		if delim == '{' {
			token, err := d.Token()
			if err != nil {
				return err
			}
			name, _ := token.(string)
			at = strings.TrimPrefix(path+"."+clip(name), ".")
			if folded && depth == 0 {
				name = strings.ToLower(name)
			}
			if names[name] {
				return repeatedField(at)
			}
			names[name] = true
		}
		err = unambiguous(d, at, depth+1, folded)
	}
	if err == nil {
		_, err = d.Token()
	}
	return err
}
