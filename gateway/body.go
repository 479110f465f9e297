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

// Limits of a request's body.
const (
	maxChatBody = 1 << 20
	// maxImageBody is for messages to a model that accepts images.
	maxImageBody = 8 << 20
	// maxBigBodies limits the messages above maxChatBody in memory, and maxBigOfOne those from one address. Each
	// takes several times its size: as received, as decoded, and as sent to the model.
	maxBigBodies = 12
	maxBigOfOne  = 3
)

// bigBodies counts the messages above maxChatBody.
type bigBodies struct {
	// Fixed after newBigBodies.
	all    chan struct{} // a slot for each
	byAddr *quota.Quota[netip.Addr]
}

func newBigBodies() *bigBodies {
	return &bigBodies{all: make(chan struct{}, maxBigBodies), byAddr: quota.New[netip.Addr](quota.Options{AtOnce: maxBigOfOne})}
}

// enter takes a slot for a body; shared means that many users may share the address.
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

// errBigBodies means that all slots for large bodies are taken.
var errBigBodies = errors.New("too many large messages at once")

// readBody reads a JSON body; strict rejects unknown fields.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, into any, strict bool, shape errorShape) bool {
	if !jsonOnly(w, r, shape) {
		return false
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxChatBody))
	return takeBody(w, raw, err, into, strict, shape)
}

// readTurn reads the body of a message to the text agent, which may be larger if the model accepts images. The caller
// must always call done, when the message is answered.
func (s *Server) readTurn(w http.ResponseWriter, r *http.Request, into any, strict bool, shape errorShape) (done func(), ok bool) {
	done = func() {}
	if !s.opts.Chat.Sees() {
		return done, s.readBody(w, r, into, strict, shape)
	}
	if !jsonOnly(w, r, shape) {
		return done, false
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
	return done, takeBody(w, raw, err, into, strict, shape)
}

// jsonOnly rejects a body with another Content-Type.
func jsonOnly(w http.ResponseWriter, r *http.Request, shape errorShape) bool {
	if isJSON(r.Header.Get("Content-Type")) {
		return true
	}
	refuse(w, shape, http.StatusUnsupportedMediaType, "invalid_message", "The body must be JSON, with Content-Type: application/json.")
	return false
}

// takeBody decodes a body, or answers with the problem; err is the error of reading it.
func takeBody(w http.ResponseWriter, raw []byte, err error, into any, strict bool, shape errorShape) bool {
	if err == nil {
		err = decodeBody(raw, into, strict)
	}
	var twice repeatedField
	var tooBig *http.MaxBytesError
	var otherType *json.UnmarshalTypeError
	switch {
	case err == nil:
		return true
	case errors.As(err, &twice):
		told := shape(http.StatusBadRequest, "invalid_message", "The field "+string(twice)+" is repeated; give it once.")
		if _, has := told["param"]; has {
			told["param"] = twice
		}
		answer(w, http.StatusBadRequest, map[string]any{"error": told})
	case errors.As(err, &otherType) && otherType.Field != "":
		refuse(w, shape, http.StatusBadRequest, "invalid_message", "The body cannot be read: the field "+
			clip(otherType.Field)+" cannot be "+clip(otherType.Value)+".")
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		refuse(w, shape, http.StatusRequestTimeout, "too_slow", "The body did not arrive within "+bodyTime.String()+"; send it again.")
	case errors.As(err, &tooBig):
		w.Header().Set("Connection", "close")
		refuse(w, shape, http.StatusRequestEntityTooLarge, "invalid_message", fmt.Sprintf("The body is larger than %d MiB.",
			tooBig.Limit>>20))
	case errors.Is(err, errBigBodies):
		w.Header().Set("Connection", "close")
		retryAfter(w, 5*time.Second)
		refuse(w, shape, http.StatusServiceUnavailable,
			"full", fmt.Sprintf("The gateway is processing too many messages above %d MiB; try again in a moment.", maxChatBody>>20))
	default:
		refuse(w, shape, http.StatusBadRequest, "invalid_message", "The body cannot be read: "+clip(err.Error())+".")
	}
	return false
}

// decodeBody decodes one JSON value. The error is a repeatedField if a field is repeated.
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

// repeatedField is the error for a repeated field of an object, with its path. encoding/json uses the last value,
// other parsers the first.
type repeatedField string

func (f repeatedField) Error() string { return "the field " + string(f) + " is repeated" }

// unambiguous reads one JSON value. The error is a repeatedField, errDeep, or the decoder's. path and depth are those
// of the value; folded means that the outermost names are case-insensitive.
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
