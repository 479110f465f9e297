package config

import (
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"voicegw/config/setting"
	"voicegw/internal/webhook"
)

// Webhooks are the receivers of events, by their names.
type Webhooks map[string]*Webhook

// Webhook is a receiver of events.
type Webhook struct {
	// Receiver, `https` unless `private`. Never printed or logged.
	URL setting.Secret `key:"url" unset:"needed" eg:"https://hooks.example.com/voicegw"`
	// Signing secret: `whsec_` and 24 to 64 bytes in base64 (`echo whsec_$(openssl rand -base64 32)`).
	Secret setting.Secret `key:"secret" unset:"needed" eg:"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="`
	// Also signs, while the receiver [changes secrets](webhooks.md#changing-the-secret).
	OldSecret setting.Secret `key:"old_secret" eg:"whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="`
	// [Events](webhooks.md#events) to send.
	Events []string `key:"events"`
	// Allows `http` and private addresses; never link-local ones.
	Private bool `key:"private"`
	// Time for an attempt.
	Timeout time.Duration `key:"timeout" from:"1s" to:"30s"`
}

// mostReceivers bounds the webhooks, because each has its own metrics.
const mostReceivers = 20

const webhooksPrefix = "webhooks."

// Secrets returns the secrets that sign for the webhook. Load has checked them.
func (w *Webhook) Secrets() []webhook.Secret {
	var all []webhook.Secret
	for _, text := range []setting.Secret{w.Secret, w.OldSecret} {
		if s, err := webhook.ParseSecret(text.Reveal()); err == nil {
			all = append(all, s)
		}
	}
	return all
}

func (v validator) validateWebhooks() {
	names := slices.Sorted(maps.Keys(v.config.Webhooks))
	if len(names) > mostReceivers {
		v.bad(webhooksPrefix+names[mostReceivers]+".url", "There are %d webhooks; at most %d are allowed.", len(names), mostReceivers)
	}
	for _, name := range names {
		w, prefix := v.config.Webhooks[name], webhooksPrefix+name+"."
		if wrong := checkReceiver(w.URL.Reveal(), w.Private); wrong != "" {
			v.wrong(prefix+"url", wrong)
		}
		if !w.Secret.IsSet() {
			v.wrong(prefix+"secret", "is missing; make one with: echo whsec_$(openssl rand -base64 32), and give it to the receiver, too")
		}
		for key, s := range map[string]setting.Secret{"secret": w.Secret, "old_secret": w.OldSecret} {
			if _, err := webhook.ParseSecret(s.Reveal()); s.IsSet() && err != nil {
				v.wrong(prefix+key, err.Error())
			}
		}
		if len(w.Events) == 0 {
			v.wrong(prefix+"events", "is empty; name some of "+strings.Join(webhook.Types(), ", "))
		}
		for _, kind := range w.Events {
			if !slices.Contains(webhook.Types(), kind) {
				v.wrong(prefix+"events", "holds "+quote(kind)+"; it may hold "+strings.Join(webhook.Types(), ", "))
			}
		}
	}
}

// checkReceiver returns the problem of a webhook's URL as the end of a sentence, or "". It does not repeat the URL.
func checkReceiver(text string, private bool) string {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return "is missing; set it to the receiver's address"
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return "must be a whole URL that begins with https:// and names a host"
	case u.User != nil || u.Fragment != "":
		return "has a user, a password or a fragment; remove it, because the gateway signs events instead"
	case private:
		return ""
	case u.Scheme == "http":
		return "must begin with https://, because events name users; http is for private networks, with private: true"
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if strings.EqualFold(u.Hostname(), "localhost") || err == nil &&
		(ip.IsLoopback() || ip.IsPrivate() || net.IP(ip.AsSlice()).IsLinkLocalUnicast()) {
		return "names this machine or a private network, which needs private: true"
	}
	return ""
}
