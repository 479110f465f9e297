package openai

import (
	"testing"

	"voicegw/transport"
	"voicegw/transport/transporttest"
)

func TestConformance(t *testing.T) {
	transporttest.Suite(t, transporttest.Harness{
		Start:  func(t *testing.T) transporttest.Provider { return newServer(t) },
		Secret: secret,
		First:  created,
		CloseKinds: map[int]transport.Kind{
			1000: transport.KindRetry, 1001: transport.KindExpired, 1002: transport.KindInvalid,
			1007: transport.KindInvalid, 1008: transport.KindRetry, 1009: transport.KindInvalid,
			1011: transport.KindRetry, 1012: transport.KindRetry, 1013: transport.KindRetry,
			3000: transport.KindAuth, 4000: transport.KindInvalid, 4999: transport.KindRetry,
		},
		StatusKinds: map[int]transport.Kind{
			400: transport.KindInvalid, 401: transport.KindAuth, 402: transport.KindQuota,
			403: transport.KindAuth, 404: transport.KindInvalid, 429: transport.KindRateLimit,
			500: transport.KindServer, 503: transport.KindServer, 301: transport.KindInvalid, 200: transport.KindInvalid,
		},
	})
}
