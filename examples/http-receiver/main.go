// Program receiver answers the requests of the tool order-cancel:
//
//	SECRET=whsec_... go run ./examples/http-receiver 127.0.0.1:9090
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

func main() {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(os.Getenv("SECRET"), "whsec_"))
	if err != nil || len(key) == 0 || len(os.Args) != 2 {
		log.Fatal("usage: SECRET=whsec_... receiver HOST:PORT")
	}
	r := &receiver{key: key, cancelled: map[string]any{}}
	http.HandleFunc("POST /orders/{order}/cancel", r.cancel)
	srv := &http.Server{Addr: os.Args[1], ReadHeaderTimeout: time.Minute}
	log.Fatal(srv.ListenAndServe())
}

type receiver struct {
	key []byte

	mu        sync.Mutex
	cancelled map[string]any // answers by operation, whose id is signed: a repeated request gets the same answer
}

func (r *receiver) cancel(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 1<<20))
	if err != nil || !r.signed(req.Header, body) {
		answer(w, http.StatusUnauthorized, map[string]string{"message": "the signature is wrong"})
		return
	}
	var args struct {
		Reason *string `json:"reason"`
	}
	if err := json.Unmarshal(body, &args); err != nil {
		answer(w, http.StatusBadRequest, map[string]string{"message": "the body is not JSON"})
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	once := req.Header.Get("webhook-id")
	if r.cancelled[once] == nil {
		order := map[string]any{"number": req.PathValue("order"), "status": "cancelled", "reason": args.Reason}
		r.cancelled[once] = map[string]any{"order": order}
	}
	answer(w, http.StatusOK, r.cancelled[once])
}

// signed reports whether the gateway signed the request within the last five minutes.
func (r *receiver) signed(h http.Header, body []byte) bool {
	at, err := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
	if age := time.Since(time.Unix(at, 0)); err != nil || age > 5*time.Minute || age < -5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, r.key)
	mac.Write([]byte(h.Get("webhook-id") + "." + h.Get("webhook-timestamp") + "."))
	mac.Write(body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for _, one := range strings.Fields(h.Get("webhook-signature")) {
		if hmac.Equal([]byte(one), []byte(want)) {
			return true
		}
	}
	return false
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(value); err != nil {
		log.Print(err)
	}
}
