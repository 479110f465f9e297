package cluster

import (
	"encoding/base64"
	"net/netip"
	"testing"
	"time"

	"voicegw/internal/auth"
	"voicegw/internal/user"
)

// TestPrincipalOfACarriedClient: a node learns the part of the client's credentials that decides about a resume; an older
// node without principals sends none.
func TestPrincipalOfACarriedClient(t *testing.T) {
	for name, p := range map[string]auth.Principal{
		"none":      {},
		"a user":    {Kind: auth.KindJWT, ID: "jwt:x:ada", User: user.Must("ada"), Scopes: auth.ScopeVoice | auth.ScopeInspect, Mark: "0102030405060708", Expires: time.Unix(2000, 0).UTC()},
		"a key":     {Kind: auth.KindKey, ID: "key:0123abcd", Scopes: auth.ScopeVoice | auth.ScopeTickets},
		"a console": {Kind: auth.KindConsole, ID: "console", Scopes: auth.AllScopes},
	} {
		header, err := Hello{SessionID: "voice-1", Start: []byte(`{}`), Addr: netip.MustParseAddr("192.0.2.7"), Principal: wirePrincipal(p)}.encode()
		if err != nil {
			t.Fatal(err)
		}
		h, err := parseHello(header)
		if got := h.Visitor().Principal; err != nil || got != p {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for text, ok := range map[string]bool{
		`{"session_id":"v","start":{},"addr":"192.0.2.7","may_inspect":true}`:                                     true,
		`{"session_id":"v","start":{},"addr":"192.0.2.7","principal":{"kind":"jwt","id":"x","user":"192.0.2.7"}}`: false,
		`{"session_id":"v","start":{},"addr":"192.0.2.7","principal":{"kind":"jwt","id":"x","scopes":999}}`:       false,
	} {
		h, err := parseHello(base64.URLEncoding.EncodeToString([]byte(text)))
		if (err == nil) != ok || !h.Visitor().Principal.IsZero() {
			t.Errorf("%s: %+v, %v", text, h, err)
		}
	}
}
