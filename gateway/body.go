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

// The bounds of a request's body.
const (
	maxChatBody = 1 << 20
	// maxImageBody bounds the body of a message to a model that sees images.
	maxImageBody = 8 << 20
	// maxBigBodies is how many messages larger than maxChatBody may be in memory at once, and
	// maxBigOfOne how many of them may come from one address. Each takes several times its size:
	// as it arrived, as it was decoded, and as it goes to the model.
	maxBigBodies = 12
	maxBigOfOne  = 3
)

// bigBodies are the messages larger than maxChatBody.
type bigBodies struct {
	// Fixed after newBigBodies.
	all    chan struct{} // a place for each
	byAddr *quota.Quota[netip.Addr]
}

func newBigBodies() *bigBodies {
	return &bigBodies{all: make(chan struct{}, maxBigBodies), byAddr: quota.New[netip.Addr](quota.Options{AtOnce: maxBigOfOne})}
}

// enter takes a place for a body; shared says that many users may be behind the address.
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

// errBigBodies refuses a large body while as many are in memory as there is room for.
var errBigBodies = errors.New("too many large messages at once")

// readBody reads a JSON body; strict refuses unknown fields.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, into any, strict bool, shape errorShape) bool {
	if !jsonOnly(w, r, shape) {
		return false
	}
	raw, err := io.ReadAll(&shallow{r: http.MaxBytesReader(w, r.Body, maxChatBody)})
	return takeBody(w, raw, err, into, strict, shape)
}

// readTurn reads the body of a message to the text agent, which may be larger where the
// model sees images. done must be called when the message is answered, also if it is not ok.
func (s *Server) readTurn(w http.ResponseWriter, r *http.Request, into any, strict bool, shape errorShape) (done func(), ok bool) {
	done = func() {}
	if !s.opts.Chat.Sees() {
		return done, s.readBody(w, r, into, strict, shape)
	}
	if !jsonOnly(w, r, shape) {
		return done, false
	}
	body := &shallow{r: http.MaxBytesReader(w, r.Body, maxImageBody)}
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

// jsonOnly refuses a body whose Content-Type is not JSON.
func jsonOnly(w http.ResponseWriter, r *http.Request, shape errorShape) bool {
	if isJSON(r.Header.Get("Content-Type")) {
		return true
	}
	refuse(w, shape, http.StatusUnsupportedMediaType, "invalid_message", "The body must be JSON, with Content-Type: application/json.")
	return false
}

// takeBody decodes a body, or answers with what is wrong; err is the error of reading it.
func takeBody(w http.ResponseWriter, raw []byte, err error, into any, strict bool, shape errorShape) bool {
	if err == nil {
		if twice := repeated(raw, strict); twice != "" {
			told := shape(http.StatusBadRequest, "invalid_message", "The field "+twice+" comes twice; give it once.")
			if _, has := told["param"]; has {
				told["param"] = twice
			}
			answer(w, http.StatusBadRequest, map[string]any{"error": told})
			return false
		}
		err = decodeBody(raw, into, strict)
	}
	var tooBig *http.MaxBytesError
	var otherType *json.UnmarshalTypeError
	switch {
	case err == nil:
		return true
	case errors.As(err, &otherType) && otherType.Field != "":
		refuse(w, shape, http.StatusBadRequest, "invalid_message", "The body cannot be read: the field "+clip(otherType.Field)+" cannot be "+clip(otherType.Value)+".")
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		refuse(w, shape, http.StatusRequestTimeout, "too_slow", "The body did not come within "+bodyTime.String()+"; send it again.")
	case errors.As(err, &tooBig):
		w.Header().Set("Connection", "close")
		refuse(w, shape, http.StatusRequestEntityTooLarge, "invalid_message", fmt.Sprintf("The body is larger than %d MiB.", tooBig.Limit>>20))
	case errors.Is(err, errBigBodies):
		w.Header().Set("Connection", "close")
		retryAfter(w, 5*time.Second)
		refuse(w, shape, http.StatusServiceUnavailable, "full", fmt.Sprintf("The gateway has as many messages of more than %d MiB as it takes; try again in a moment.", maxChatBody>>20))
	default:
		refuse(w, shape, http.StatusBadRequest, "invalid_message", "The body cannot be read: "+clip(err.Error())+".")
	}
	return false
}

// decodeBody decodes one JSON value.
func decodeBody(raw []byte, into any, strict bool) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(into); err != nil {
		return err //nolint:wrapcheck // takeBody writes the answer
	}
	if _, more := d.Token(); !errors.Is(more, io.EOF) {
		return errors.New("something follows the JSON object")
	}
	return nil
}

// repeated returns the path of a field that comes twice in its object: encoding/json takes the
// last one, other parsers the first. It is empty if no field does. folded says that the
// outermost names are read whatever their case. Invalid JSON is left to the parser.
func repeated(raw []byte, folded bool) string {
	type level struct {
		names map[string]bool // nil for a list
		named bool            // a name was read, and its value was not
		path  string
		at    string // of the value that comes next
		n     int    // of a list
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var open []*level
	// value is called at the end of each value.
	value := func() {
		if len(open) > 0 {
			top := open[len(open)-1]
			top.named = false
			top.n++
		}
	}
	for {
		token, err := d.Token()
		if err != nil {
			return ""
		}
		var top *level
		at := ""
		if len(open) > 0 {
			top = open[len(open)-1]
			if at = top.at; top.names == nil {
				at = top.path + "[" + strconv.Itoa(top.n) + "]"
			}
		}
		switch delim, _ := token.(json.Delim); {
		case delim == '{':
			open = append(open, &level{names: map[string]bool{}, path: at})
		case delim == '[':
			open = append(open, &level{path: at})
		case delim != 0:
			open = open[:len(open)-1]
			value()
		case top != nil && top.names != nil && !top.named:
			name, _ := token.(string)
			at := strings.TrimPrefix(top.path+"."+clip(name), ".")
			if folded && len(open) == 1 {
				name = strings.ToLower(name)
			}
			if top.names[name] {
				return at
			}
			top.names[name], top.named, top.at = true, true, at
		default:
			value()
		}
	}
}
