package rest

import (
	"net/http"
	"regexp"
	"strings"

	"voicegw/sim/fault"
	"voicegw/sim/wire"
)

// OpenAIPaths matches the paths of an API of OpenAI: those of its versions, and Azure's older ones, which name a
// deployment.
func OpenAIPaths(api string) *regexp.Regexp {
	return regexp.MustCompile(`^/(?:` + Versions(OpenAIAPI) + `|openai/deployments/([^/]+))/` + api + `$`)
}

// OpenAIHandle is a Handle that also gets the deployment in the path, which may be empty, and whether the path is
// Azure's.
type OpenAIHandle func(x *Exchange, body []byte, deployment string, azure bool) error

// ServeOpenAI is Serve for the paths of OpenAIPaths. Other paths are not found.
func ServeOpenAI(w http.ResponseWriter, r *http.Request, o *wire.Options, api fault.API, paths *regexp.Regexp, handle OpenAIHandle) {
	at := paths.FindStringSubmatch(r.URL.Path)
	if at == nil {
		http.NotFound(w, r)
		return
	}
	azure := strings.HasPrefix(r.URL.Path, "/openai/")
	Serve(w, r, o, api, OpenAI, OpenAIKey(OpenAIKeyOf(r)), func(x *Exchange, body []byte) error {
		return handle(x, body, at[1], azure)
	})
}
