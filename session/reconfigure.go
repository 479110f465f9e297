package session

import (
	"fmt"
	"maps"
	"slices"

	"voicegw/internal/cost"
	"voicegw/internal/quota"
	"voicegw/orchestrator"
	"voicegw/transport"
)

// Settings are the options that may change while sessions run; see [Options].
type Settings struct {
	Transports map[string]transport.Transport
	Policy     orchestrator.Policy
	Limits     Limits
	Prices     *cost.Table
}

// CanReconfigure returns why Reconfigure would refuse these settings: the names of Transports must not change.
func (m *Manager) CanReconfigure(s Settings) error {
	had, has := slices.Sorted(maps.Keys(m.options().Transports)), slices.Sorted(maps.Keys(s.Transports))
	if !slices.Equal(had, has) {
		return fmt.Errorf("session: the providers are %q, and cannot become %q while sessions may run", had, has)
	}
	return nil
}

// Reconfigure applies other settings, unless CanReconfigure refuses them. Running sessions keep their Policy, Limits
// and Prices, and use the new Transports for their next connection. Sessions beyond lower limits continue.
func (m *Manager) Reconfigure(s Settings) error {
	if err := m.CanReconfigure(s); err != nil {
		return err
	}
	next := *m.options()
	next.Transports, next.Policy, next.Limits, next.Prices = s.Transports, s.Policy, s.Limits, s.Prices
	next = next.withDefaults()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.places.Limit(quota.Options{AtOnce: next.Limits.PerAddress, PerSecond: next.Limits.NewPerSecond})
	m.waiting.Limit(next.Limits.Waiting, next.Limits.WaitingPerAddress)
	m.now.Store(&next)
	return nil
}

// options returns the current options. They are immutable; the next call may return others.
func (m *Manager) options() *Options { return m.now.Load() }
