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
func (w *Webhook) Secrets() []webhook.Secret { return parseSecrets(w.Secret, w.OldSecret) }

func parseSecrets(texts ...setting.Secret) (all []webhook.Secret) {
	for _, text := range texts {
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
		v.validateReceiver(prefix+"url", w.URL.Reveal(), w.Private)
		v.wrongIf(!w.Secret.IsSet(), prefix+"secret", "is missing; make one with: echo whsec_$(openssl rand -base64 32), and give it "+
			"to the receiver, too")
		v.validateSigning(prefix+"secret", w.Secret)
		v.validateSigning(prefix+"old_secret", w.OldSecret)
		v.wrongIf(len(w.Events) == 0, prefix+"events", "is empty; name some of %s", strings.Join(webhook.Types(), ", "))
		for _, kind := range w.Events {
			v.wrongIf(!slices.Contains(webhook.Types(), kind), prefix+"events", "has the entry %s; it may have %s", quote(kind),
				strings.Join(webhook.Types(), ", "))
		}
	}
}

func (v validator) validateSigning(key string, s setting.Secret) {
	if s.IsSet() {
		_, err := webhook.ParseSecret(s.Reveal())
		v.failed(key, err)
	}
}

// validateReceiver does not repeat the URL, which is a secret.
func (v validator) validateReceiver(key, text string, private bool) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		v.wrong(key, "is missing; set it to the receiver's address")
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		v.wrong(key, "must be a whole URL that begins with https:// and names a host")
	case u.User != nil || u.Fragment != "":
		v.wrong(key, "has a user, a password or a fragment; remove it, because the gateway signs events instead")
	case private:
	case u.Scheme == "http":
		v.wrong(key, "must begin with https://, because events name users; http is for private networks, with private: true")
	default:
		ip, err := netip.ParseAddr(u.Hostname())
		v.wrongIf(strings.EqualFold(u.Hostname(), "localhost") || err == nil &&
			(ip.IsLoopback() || ip.IsPrivate() || net.IP(ip.AsSlice()).IsLinkLocalUnicast()),
			key, "names this machine or a private network, which needs private: true")
	}
}
