package config

import (
	"net/url"
	"strings"

	"voicegw/config/setting"
	"voicegw/gateway/phone"
)

// Phone configures phone calls. Numbers have the form +15550100.
type Phone struct {
	// Address at which carriers reach the gateway. Enables phone calls; the host counts as one of `hosts`.
	PublicURL string `key:"public_url" is:"url" eg:"https://voice.example.com"`
	// Numbers that are answered, each with its agent: `+15550100=reception`, or the number alone for the default agent.
	// Without any, all calls are answered.
	Numbers []string `key:"numbers" eg:"[+15550100=reception, +15550101]"`
	// [Notice](exact.md) of calls instead of `exact.notice`, such as that they are recorded.
	Announcement string `key:"announcement" eg:"This call may be recorded."`
	// Said if no conversation can begin.
	Sorry string `key:"sorry"`
	// Numbers to which a tool may [transfer](phone.md#transfer-a-call) a call, by name.
	Transfers []string `key:"transfers" eg:"[sales=+15550123]"`
	// Calls that `POST /v1/phone/calls` begins.
	Outbound PhoneOutbound `key:"outbound"`
	// Twilio.
	Twilio PhoneTwilio `key:"twilio"`
	// Telnyx, with a TeXML application.
	Telnyx PhoneTelnyx `key:"telnyx"`
	// Vonage.
	Vonage PhoneVonage `key:"vonage"`
}

// PhoneOutbound limits the calls that the gateway begins.
type PhoneOutbound struct {
	// The gateway's number for outbound calls; empty disables them.
	From string `key:"from" eg:"+15550100"`
	// Carrier that makes them.
	Carrier string `key:"carrier" words:"twilio,telnyx,vonage"`
	// Numbers, or beginnings of numbers, that may be called.
	Prefixes []string `key:"prefixes" eg:"[+1555, +4930123456]"`
	// Calls per minute.
	PerMinute int `key:"per_minute" from:"1" to:"1000"`
}

// PhoneTwilio is an account at Twilio.
type PhoneTwilio struct {
	// Account SID.
	AccountSID string `key:"account_sid" eg:"AC00000000000000000000000000000000"`
	// Auth token, which signs all requests.
	AuthToken setting.Secret `key:"auth_token" eg:"change-me"`
	// REST interface.
	API string `key:"api" is:"url"`
}

// PhoneTelnyx is an account at Telnyx.
type PhoneTelnyx struct {
	// Account id.
	AccountSID string `key:"account_sid" eg:"00000000-0000-0000-0000-000000000000"`
	// API key.
	APIKey setting.Secret `key:"api_key" eg:"KEY-change-me"`
	// Public key of its webhooks: Ed25519 in base64.
	PublicKey string `key:"public_key" eg:"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="`
	// TeXML application, for outbound calls.
	Application string `key:"application" eg:"1000000000000000000"`
	// REST interface.
	API string `key:"api" is:"url"`
}

// PhoneVonage is an application at Vonage.
type PhoneVonage struct {
	// Application id.
	Application string `key:"application" eg:"00000000-0000-0000-0000-000000000000"`
	// Signature secret, which signs its requests.
	SignatureSecret setting.Secret `key:"signature_secret" eg:"change-me"`
	// File with the application's private key (PEM), which signs the gateway's requests.
	PrivateKey setting.Path `key:"private_key" eg:"/etc/voicegw/vonage.pem"`
	// REST interface.
	API string `key:"api" is:"url"`
}

// The values of Confirmation.Phone.
const (
	confirmNoKeys = "none"
	ConfirmKeys   = "keys" // a caller approves with 1 and declines with 2
)

// Enabled reports whether phone calls are configured.
func (p *Phone) Enabled() bool { return p.PublicURL != "" }

// Host returns the host of PublicURL; empty without one.
func (p *Phone) Host() []string {
	if u, err := url.Parse(p.PublicURL); err == nil && u.Host != "" {
		return []string{u.Host}
	}
	return nil
}

// Agents returns the agents by number.
func (p *Phone) Agents() map[string]string { return pairsIn(p.Numbers) }

// TransferNumbers returns the numbers of Transfers by name.
func (p *Phone) TransferNumbers() map[string]string { return pairsIn(p.Transfers) }

func pairsIn(list []string) map[string]string {
	all := map[string]string{}
	for _, text := range list {
		name, value, _ := strings.Cut(text, "=")
		all[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return all
}

func (v validator) validatePhone() {
	p := &v.config.Phone
	u, err := url.Parse(p.PublicURL)
	v.wrongIf(p.Enabled() && (err != nil || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil),
		"phone.public_url", "must be a scheme and a host without a path, such as https://voice.example.com")
	for number, agent := range p.Agents() {
		v.wrongIf(!phone.IsNumber(number), "phone.numbers", "has the entry %s; write a number such as +15550100, or +15550100=agent",
			quote(number+"="+agent))
	}
	for name, number := range p.TransferNumbers() {
		v.wrongIf(!validName.MatchString(name) || !phone.IsNumber(number), "phone.transfers", "has the entry %s; write a "+
			"name and a number, such as sales=+15550123", quote(name+"="+number))
	}
	from := p.Outbound.From
	v.wrongIf(from != "" && !phone.IsNumber(from), "phone.outbound.from", "must be a number such as +15550100, not %s", quote(from))
	for _, prefix := range p.Outbound.Prefixes {
		digits, ok := strings.CutPrefix(prefix, "+")
		v.wrongIf(!ok || digits == "" || strings.Trim(digits, "0123456789") != "", "phone.outbound.prefixes",
			"has the entry %s; write + and digits, such as +1555", quote(prefix))
	}
	if p.Enabled() {
		v.warnOfPhone(p)
	}
}

// warnOfPhone warns of settings that lead to refused calls. A reload must not fail for them: others may come later.
func (v validator) warnOfPhone(p *Phone) {
	complete := map[string]bool{
		phone.Twilio: p.Twilio.AccountSID != "" && p.Twilio.AuthToken.IsSet(),
		phone.Telnyx: p.Telnyx.AccountSID != "" && p.Telnyx.PublicKey != "" && p.Telnyx.APIKey.IsSet(),
		phone.Vonage: p.Vonage.Application != "" && p.Vonage.PrivateKey != "" && p.Vonage.SignatureSecret.IsSet(),
	}
	switch out := p.Outbound; {
	case !complete[phone.Twilio] && !complete[phone.Telnyx] && !complete[phone.Vonage]:
		v.warnings = append(v.warnings,
			"phone.public_url enables phone calls, but the account of no carrier is complete, so all calls are refused; "+
				"set phone.twilio.account_sid and phone.twilio.auth_token, or those of another carrier")
	case out.From != "" && !complete[out.Carrier]:
		v.warnings = append(v.warnings,
			"phone.outbound.from enables outbound calls, but the account of phone.outbound.carrier, "+out.Carrier+
				", is not complete, so they fail")
	case out.From != "" && len(out.Prefixes) == 0:
		v.warnings = append(v.warnings, "phone.outbound.from enables outbound calls, but phone.outbound.prefixes allows no number")
	}
}
