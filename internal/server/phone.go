package server

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"voicegw/config"
	"voicegw/gateway/phone"
	"voicegw/store"
)

// openPhone makes the server of phone calls, if they are configured.
func (s *Server) openPhone() error {
	if !s.cfg.Phone.Enabled() {
		return nil
	}
	set, err := phoneSettings(s.cfg)
	if err == nil {
		s.phone = phone.New(phone.Options{Settings: set, Voice: s.caps.handoff, Refuses: s.sessions.Draining,
			Others: s.others(), Logger: s.logger.With("component", "phone")})
	}
	return err
}

// othersFor is how long the answer of others counts: many calls ask during a drain.
const othersFor = time.Second

// others returns a function that reports whether another gateway takes sessions.
func (s *Server) others() func() bool {
	var mu sync.Mutex // guards the other two
	var asked time.Time
	var are bool
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(asked) < othersFor {
			return are
		}
		ctx, cancel := context.WithTimeout(context.Background(), phoneTime)
		defer cancel()
		all, err := s.caps.store.Nodes.List(ctx)
		if err != nil {
			s.logger.Warn("listing the other gateways failed, so calls stay here", "error", err)
		}
		self := s.node.Node().ID
		are = slices.ContainsFunc(all, func(n store.Node) bool { return n.ID != self && !n.Draining })
		asked = time.Now()
		return are
	}
}

func phoneSettings(cfg *config.Config) (phone.Settings, error) {
	p := &cfg.Phone
	set := phone.Settings{
		PublicURL: p.PublicURL, Numbers: p.Agents(), Announcement: p.Announcement, Sorry: p.Sorry,
		KeyApproval: cfg.Confirmation.Phone == config.ConfirmKeys, Transfers: p.TransferNumbers(),
		Outbound: phone.Outbound(p.Outbound),
		Accounts: map[string]phone.Account{
			phone.Twilio: {ID: p.Twilio.AccountSID, Secret: p.Twilio.AuthToken.Reveal(), API: p.Twilio.API},
			phone.Telnyx: {ID: p.Telnyx.AccountSID, Secret: p.Telnyx.APIKey.Reveal(), PublicKey: p.Telnyx.PublicKey,
				Application: p.Telnyx.Application, API: p.Telnyx.API},
		},
	}
	vonage := phone.Account{ID: p.Vonage.Application, Secret: p.Vonage.SignatureSecret.Reveal(), API: p.Vonage.API}
	if p.Vonage.PrivateKey != "" {
		key, err := privateKey(string(p.Vonage.PrivateKey))
		if err != nil {
			return set, fmt.Errorf("phone.vonage.private_key: %w", err)
		}
		vonage.PrivateKey = key
	}
	set.Accounts[phone.Vonage] = vonage
	return set, nil
}

// privateKey reads an RSA key in PEM. The error does not contain it.
func privateKey(path string) (*rsa.PrivateKey, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("the file has no PEM block")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(*rsa.PrivateKey)
	if err != nil || !ok {
		return nil, errors.New("the file has no RSA private key")
	}
	return key, nil
}
