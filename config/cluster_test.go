package config

import (
	"strings"
	"testing"
)

// TestClusterURLOfAPod: the chart writes http://$(POD_IP):8090, and the address of a pod may be IPv6.
func TestClusterURLOfAPod(t *testing.T) {
	for url, want := range map[string]string{
		"http://10.0.0.1:8090":     "http://10.0.0.1:8090",
		"http://fd00::1:8090":      "http://[fd00::1]:8090",
		"http://[fd00::1]:8090":    "http://[fd00::1]:8090",
		"https://gateway-1:8090":   "https://gateway-1:8090",
		"http://fd00:1:2:3::4:809": "http://[fd00:1:2:3::4]:809",
	} {
		c, _, err := load(t, "", []string{"VOICEGW_STORE_URL=nats://nats:4222", "VOICEGW_CLUSTER_LISTEN=:8090", "VOICEGW_CLUSTER_URL=" + url, "VOICEGW_CLUSTER_SECRET=" + strings.Repeat("a", 32)})
		if err != nil || c.Cluster.URL != want {
			t.Errorf("%s: %+v, %v, want %s", url, c, err, want)
		}
	}
}
